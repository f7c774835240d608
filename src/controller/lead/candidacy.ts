/**
 * The election of controllers. While `archwright clean` holds the Lease, a replica waits, as for any holder. If
 * clean deleted the Lease, the cluster is clean and must stay so: the replica does nothing until it is started
 * again. If clean was interrupted, or released the Lease because something could not be removed, the replica
 * can lead again: pods may wait behind gates.
 */
import { runElection, type LeaderElectionOptions } from '../../kube/election/leader-election.ts';

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
  const { stop, name: lease, log } = options;
  const cleaned = new AbortController();
  let holder: string | undefined;
  await runElection({
    ...options,
    onRecord: (record) => {
      if (isCleanHolder(record.holder) && record.holder !== holder)
        log.warn({ lease }, 'archwright clean holds the lease; this replica waits');
      ({ holder } = record);
    },
    mayCreate: () => {
      if (isCleanHolder(holder)) cleaned.abort(new Error('archwright clean deleted the lease'));
      return !cleaned.signal.aborted;
    },
    // After clean, people delete the chart's objects: the Lease is read before its Role goes.
    isPrompt: () => isCleanHolder(holder),
    stop: AbortSignal.any([stop, cleaned.signal]),
  });
  if (!cleaned.signal.aborted) return 'stopped';
  log.warn(
    { lease },
    'archwright was removed from this cluster by archwright clean; this replica does nothing until it is restarted',
  );
  return 'cleaned';
}
