/**
 * Takes, renews and releases a Lease. Clocks of other replicas are never compared with ours: a Lease has
 * expired if its record was unchanged for its duration by our own monotonic clock.
 *
 * Rules: client-go tools/leaderelection/leaderelection.go (tryAcquireOrRenew, release).
 */
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { asObject } from '../../http/json.ts';
import { ignoring } from '../api/errors.ts';
import { paths } from '../api/paths.ts';
import type { KubeObject } from '../api/objects.ts';
import type { NamedObject } from '../watch/reflector.ts';

/** client-go's default applies if a Lease has no usable duration. The maximum limits a candidate's wait. */
const duration = { usualSeconds: 15, mostSeconds: 3600 };

const time = v.fallback(v.optional(v.string()), undefined);
const count = v.pipe(v.number(), v.minValue(0));
const specShape = v.object({
  holderIdentity: v.fallback(v.string(), ''),
  leaseDurationSeconds: v.fallback(count, duration.usualSeconds),
  acquireTime: time,
  renewTime: time,
  leaseTransitions: v.fallback(count, 0),
});

export type LeaseRecord = ReturnType<typeof recordOf>;

/** Reads a Lease. Malformed fields count as absent. Without a holder, `holder` is empty. */
export function recordOf(lease: KubeObject) {
  const spec = v.parse(specShape, asObject((lease as { readonly spec?: unknown }).spec) ?? {});
  const { holderIdentity: holder, leaseTransitions: transitions, acquireTime, renewTime } = spec;
  const durationMs = Math.min(spec.leaseDurationSeconds, duration.mostSeconds) * 1000;
  return { holder, durationMs, acquireTime, renewTime, transitions };
}

/** Whether two reads of a Lease saw the same record. Labels and versions do not count as a renewal. */
export const sameRecord = (a: LeaseRecord, b: LeaseRecord): boolean => isDeepStrictEqual(a, b);

/** `2026-11-01T00:00:00.000000Z`: the stored form of a MicroTime. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}

export interface LeaseLockOptions extends Omit<NamedObject, 'log'> {
  /** Unique among all candidates and restarts of a pod. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  /** Called with the record of each read and write of the Lease. */
  readonly onRecord?: (record: LeaseRecord) => void;
  /** Whether to create a Lease that does not exist. Default: yes. */
  readonly mayCreate?: () => boolean;
}

interface Observed {
  readonly record: LeaseRecord;
  readonly resourceVersion: string;
  /** Monotonic time when this record was first seen. */
  readonly at: number;
}

export type LeaseLock = ReturnType<typeof createLeaseLock>;

export function createLeaseLock(options: LeaseLockOptions) {
  const { client, namespace, name, identity, leaseDurationMs, clock } = options;
  const path = paths.leases(namespace, name);
  let observed: Observed | undefined;

  async function takeFromRead(signal: AbortSignal): Promise<boolean> {
    const seen = await read(signal);
    const isForeign = seen !== undefined && seen.record.holder !== '' && seen.record.holder !== identity;
    if (isForeign && clock.monotonic() < seen.at + seen.record.durationMs) return false;
    if (seen === undefined && options.mayCreate?.() === false) return false;
    await take(seen, signal);
    return true;
  }

  /** Writes only if nothing changed since the read. */
  async function take(seen: Observed | undefined, signal: AbortSignal): Promise<void> {
    const spec = wanted(seen?.record);
    if (seen) return await write(spec, seen.resourceVersion, signal);
    const metadata = { name, namespace };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
    observe(await client.create<KubeObject>(paths.leases(namespace), lease, { signal }));
  }

  async function read(signal: AbortSignal): Promise<Observed | undefined> {
    const found = await ignoring('not-found', client.get<KubeObject>(path, { signal }));
    return found && observe(found);
  }

  async function write(spec: object, resourceVersion: string, signal: AbortSignal): Promise<void> {
    const body = { metadata: { resourceVersion }, spec };
    observe(await client.patch<KubeObject>(path, { type: 'merge', body }, { signal }));
  }

  function wanted(before: LeaseRecord | undefined): object {
    const now = microTime(clock.now());
    const isOurs = before?.holder === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: isOurs ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: before === undefined ? 0 : before.transitions + (isOurs ? 0 : 1),
    };
  }

  function observe(lease: KubeObject): Observed {
    const record = recordOf(lease);
    options.onRecord?.(record);
    const at = observed && sameRecord(observed.record, record) ? observed.at : clock.monotonic();
    observed = { record, resourceVersion: lease.metadata?.resourceVersion ?? '', at };
    return observed;
  }

  return {
    /** The holder that was seen last; empty for none. */
    holder: (): string => observed?.record.holder ?? '',
    /**
     * Takes or renews the Lease.
     * @returns false if another replica holds it
     * @throws KubeError if that is unknown; the Lease may have been taken
     */
    tryAcquireOrRenew: async (signal: AbortSignal): Promise<boolean> => {
      if (observed?.record.holder === identity) {
        const { record, resourceVersion } = observed;
        const renewing = write(wanted(record), resourceVersion, signal).then(() => true);
        if (await ignoring(['conflict', 'not-found'], renewing)) return true;
      }
      // A conflict means: another replica was faster.
      return (await ignoring('conflict', takeFromRead(signal))) ?? false;
    },
    /**
     * Takes the Lease at once, even from another holder.
     * @returns the record before; `undefined`: there was no Lease
     * @throws KubeError
     */
    seize: async (signal: AbortSignal): Promise<LeaseRecord | undefined> => {
      const seen = await read(signal);
      await take(seen, signal);
      return seen?.record;
    },
    /** Deletes the Lease if we hold it. @throws KubeError */
    delete: async (signal: AbortSignal): Promise<void> => {
      const seen = await read(signal);
      if (seen?.record.holder !== identity) return;
      await client.delete(path, { signal, resourceVersion: seen.resourceVersion });
    },
    /**
     * Releases the Lease if we hold it, so another candidate does not wait for its expiry. @throws KubeError
     * @returns whether we held it
     */
    release: async (signal: AbortSignal): Promise<boolean> => {
      const seen = await read(signal);
      if (seen?.record.holder !== identity) return false;
      const now = microTime(clock.now());
      const times = { leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
      const spec = { holderIdentity: '', ...times, leaseTransitions: seen.record.transitions };
      await write(spec, seen.resourceVersion, signal);
      return true;
    },
  };
}
