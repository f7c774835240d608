/** The record in a Lease (coordination.k8s.io/v1). */
import type { KubeObject } from '../api/objects.ts';

export interface LeaseRecord {
  /** Empty: no holder. */
  readonly holder: string;
  readonly durationMs: number;
  readonly acquireTime: string | undefined;
  readonly renewTime: string | undefined;
  readonly transitions: number;
}

/** A Lease without a usable duration gets client-go's default; the maximum limits how long a candidate waits. */
const duration = { usualSeconds: 15, mostSeconds: 3600 };

/** Reads a Lease. Malformed fields count as absent. */
export function recordOf(lease: KubeObject): LeaseRecord {
  const spec = ((lease as { readonly spec?: unknown }).spec ?? {}) as Readonly<Record<string, unknown>>;
  const text = (name: string): string | undefined => {
    const value = spec[name];
    return typeof value === 'string' ? value : undefined;
  };
  const number = (name: string, otherwise: number): number => {
    const value = spec[name];
    return typeof value === 'number' && value >= 0 ? value : otherwise;
  };
  const seconds = Math.min(number('leaseDurationSeconds', duration.usualSeconds), duration.mostSeconds);
  return {
    holder: text('holderIdentity') ?? '',
    durationMs: seconds * 1000,
    acquireTime: text('acquireTime'),
    renewTime: text('renewTime'),
    transitions: number('leaseTransitions', 0),
  };
}

/** Whether two reads of a Lease saw the same record. Labels and versions do not count as a renewal. */
export function sameRecord(a: LeaseRecord, b: LeaseRecord): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** `2026-11-01T00:00:00.000000Z`: what the API server stores of a MicroTime. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
