/**
 * A Lease as it is read and written: who holds it, until when others leave it alone, and what was seen of it when. Others'
 * clocks are never compared with ours: what counts is how long the record has been unchanged by our own monotonic clock.
 *
 * Rules: coordination.k8s.io/v1 Lease; client-go tools/leaderelection/leaderelection.go (tryAcquireOrRenew, release).
 */
import type { Clock } from '../../async/clock.ts';
import type { KubeClient } from '../api/client.ts';
import { ignoring } from '../api/errors.ts';
import type { KubeObject } from '../api/objects.ts';
import { paths } from '../api/paths.ts';

export interface LeaseRecord {
  /** Empty where nobody holds it. */
  readonly holder: string;
  readonly durationMs: number;
  readonly acquireTime: string | undefined;
  readonly renewTime: string | undefined;
  readonly transitions: number;
}

/** A Lease that says nothing usable about its duration gets client-go's; one that says too much is not waited for. */
const duration = { usualSeconds: 15, mostSeconds: 3600 };

/** Reads a Lease; what is malformed is taken as absent. */
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

/** Whether two looks at a Lease saw the same: labels and versions do not count as a renewal. */
export function sameRecord(a: LeaseRecord, b: LeaseRecord): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export interface LeaseLock {
  /**
   * Takes or renews the Lease.
   * @returns false where somebody else holds it
   * @throws KubeError where that cannot be told; the Lease may have been taken all the same
   */
  tryTake(signal: AbortSignal): Promise<boolean>;
  /**
   * Gives the Lease back where we hold it, so that another candidate need not wait for its end.
   * @returns whether we held it
   * @throws KubeError
   */
  release(signal: AbortSignal): Promise<boolean>;
  /** Who was seen last; empty for nobody. */
  holder(): string;
}

export interface LeaseLockOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique among all candidates, also among the lives of one pod. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly clock: Clock;
}

interface Observed {
  readonly record: LeaseRecord;
  readonly resourceVersion: string;
  /** When this record was first seen. */
  readonly at: number;
}

/** Makes a lock. Nothing is asked yet. */
export function createLeaseLock(options: LeaseLockOptions): LeaseLock {
  const { client, identity, clock } = options;
  const path = paths.leases(options.namespace, options.name);
  let observed: Observed | undefined;

  function observe(lease: KubeObject): Observed {
    const record = recordOf(lease);
    const isSame = observed !== undefined && sameRecord(observed.record, record);
    const at = isSame && observed !== undefined ? observed.at : clock.monotonic();
    observed = { record, resourceVersion: lease.metadata?.resourceVersion ?? '', at };
    return observed;
  }

  function wanted(before: LeaseRecord | undefined): object {
    const now = microTime(clock.now());
    const isOurs = before?.holder === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(options.leaseDurationMs / 1000),
      acquireTime: isOurs ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: before === undefined ? 0 : before.transitions + (isOurs ? 0 : 1),
    };
  }

  async function write(spec: object, resourceVersion: string, signal: AbortSignal): Promise<void> {
    const body = { metadata: { resourceVersion }, spec };
    observe(await client.patch<KubeObject>(path, { type: 'merge', body }, { signal }));
  }

  async function create(signal: AbortSignal): Promise<boolean> {
    const metadata = { name: options.name, namespace: options.namespace };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: wanted(undefined) };
    observe(await client.create<KubeObject>(paths.leases(options.namespace), lease, { signal }));
    return true;
  }

  /** Reads and writes only where nobody else came between; a conflict is an answer: not now. */
  async function takeFromRead(signal: AbortSignal): Promise<boolean> {
    const found = await ignoring('not-found', client.get<KubeObject>(path, { signal }));
    if (found === undefined) return await create(signal);
    const { record, resourceVersion, at } = observe(found);
    const isOthers = record.holder !== '' && record.holder !== identity;
    if (isOthers && clock.monotonic() < at + record.durationMs) return false;
    await write(wanted(record), resourceVersion, signal);
    return true;
  }

  return {
    tryTake: async (signal) => {
      if (observed?.record.holder === identity) {
        const { record, resourceVersion } = observed;
        const renewed = await ignoring(
          ['conflict', 'not-found'],
          write(wanted(record), resourceVersion, signal).then(() => true),
        );
        if (renewed === true) return true;
      }
      return (await ignoring('conflict', takeFromRead(signal))) ?? false;
    },
    release: async (signal) => {
      const found = await ignoring('not-found', client.get<KubeObject>(path, { signal }));
      if (found === undefined) return false;
      const { record, resourceVersion } = observe(found);
      if (record.holder !== identity) return false;
      const now = microTime(clock.now());
      const times = { leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
      await write(
        { holderIdentity: '', ...times, leaseTransitions: record.transitions },
        resourceVersion,
        signal,
      );
      return true;
    },
    holder: () => observed?.record.holder ?? '',
  };
}

/** `2026-11-01T00:00:00.000000Z`: what the API server stores of a MicroTime. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
