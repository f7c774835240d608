/** Values of common fields of objects. */
import type { WithConditions } from './objects.ts';

/** An RFC 3339 time of the API server's clock, in milliseconds since 1970; 0 if missing, invalid or no text. */
export function timeOf(text: unknown): number {
  return (typeof text === 'string' && Date.parse(text)) || 0;
}

/** Whether the condition `Ready` of a pod or node is true. */
export function isReady(status: WithConditions | undefined): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
