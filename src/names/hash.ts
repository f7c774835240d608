import { createHash } from 'node:crypto';

/** SHA-256 of a JSON value: equal for equal values. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url');
}
