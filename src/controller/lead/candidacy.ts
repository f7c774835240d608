/**
 * The election of controllers. While `archwright clean` holds the Lease, a replica stands aside. If clean
 * deleted the Lease, the cluster is clean and must stay so: the replica does nothing until it is started
 * again. If clean was interrupted, or released the Lease because something could not be removed, the replica
 * is a candidate again: pods may wait behind gates.
 */
import { isCode } from '../../kube/api/errors.ts';
import { runElection, type LeaderElectionOptions } from '../../kube/election/leader-election.ts';
import { recordOf, sameRecord, type LeaseRecord } from '../../kube/election/lease-lock.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';

/** Prefix of the holder's identity. Names of pods contain no slash. */
export const cleanHolder = 'archwright-clean/';

export function isCleanHolder(holder: string | undefined): boolean {
  return holder?.startsWith(cleanHolder) === true;
}

/**
 * Takes part until `stop` aborts or the cluster was cleaned.
 * @returns `cleaned` if there is nothing to do any more
 * @throws as `runElection`
 */
export async function runCandidacy(options: LeaderElectionOptions): Promise<'stopped' | 'cleaned'> {
  const { stop, log, lead } = options;
  let abandoned: LeaseRecord | undefined;
  while (!stop.aborted) {
    const aside = new AbortController();
    await runElection({
      ...options,
      onRecord: (record) => {
        if (!isCleanHolder(record.holder) || (abandoned && sameRecord(record, abandoned))) return;
        aside.abort(new Error('archwright clean holds the lease'));
      },
      lead: (signal, holds, isOurs) => lead(signal, holds, () => isOurs() && !aside.signal.aborted),
      stop: AbortSignal.any([stop, aside.signal]),
    });
    if (stop.aborted || !aside.signal.aborted) break;
    log.warn({ lease: options.name }, 'archwright clean holds the lease; this replica waits');
    const end = await standAside(options);
    if (end !== 'cleaned') abandoned = end ?? abandoned;
    else {
      log.warn(
        { lease: options.name },
        'archwright was removed from this cluster by archwright clean; this replica does nothing until it is restarted',
      );
      return 'cleaned';
    }
  }
  return 'stopped';
}

/** Waits for the end of a clean. @returns the record that one leaves behind if it ended in the middle */
async function standAside(options: LeaderElectionOptions): Promise<'cleaned' | LeaseRecord | undefined> {
  const { client, stop, clock } = options;
  const path = paths.leases(options.namespace, options.name);
  let seen: { readonly record: LeaseRecord; readonly at: number } | undefined;
  while (!stop.aborted) {
    try {
      const record = recordOf(await client.get<KubeObject>(path, { signal: stop }));
      if (!isCleanHolder(record.holder)) return undefined;
      const now = clock.monotonic();
      if (seen === undefined || !sameRecord(seen.record, record)) seen = { record, at: now };
      else if (now >= seen.at + record.durationMs) return record;
    } catch (error) {
      if (isCode(error, 'not-found')) return 'cleaned';
    }
    await clock.sleep(options.times.retryPeriodMs, stop).catch(() => undefined);
  }
  return undefined;
}
