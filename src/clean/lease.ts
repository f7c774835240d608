/**
 * The Lease during `archwright clean`: taken at once, even from a leader, and renewed until the end. A leader
 * stops at its next renewal, or within the Lease's duration; until then, clean looks for its writes again.
 */
import { randomBytes } from 'node:crypto';
import { KubeError } from '../kube/api/errors.ts';
import type { KubeObject } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { createLeaseLock, recordOf, type LeaseRecord } from '../kube/election/lease-lock.ts';
import { Term, usualLeaseTimes as times } from '../kube/election/leader-election.ts';
import { cleanHolder } from '../controller/lead/candidacy.ts';
import type { CleanRun } from './run.ts';

/** Time for the last request, which is sent even after a stop. */
const endTimeoutMs = 5000;

/**
 * @param lost aborted when another process takes the Lease, or when it cannot be renewed in time
 * @returns `undefined` in a dry run, and without the right to take it
 */
export async function takeLease(run: CleanRun, name: string, lost: AbortController) {
  const { namespace, client, clock, dryRun, progress } = run.options;
  const where = `Lease ${namespace}/${name}`;
  const found = await run.read<KubeObject>(paths.leases(namespace, name));
  const holder = found ? recordOf(found).holder : '';
  if (holder !== '') progress(`${where} is held by ${holder}`);
  if (dryRun) return undefined;

  const identity = cleanHolder + randomBytes(4).toString('hex');
  const lock = createLeaseLock({ ...times, client, namespace, name, clock, identity });
  const log = { warn: (_: unknown, message?: unknown) => progress(`${where}: ${String(message)}`) };
  const newTerm = (): Term => new Term({ ...times, lock, name, clock, log, stop: run.signal });
  let term = newTerm();
  let before: LeaseRecord | undefined;
  // The lock's client is not limited like other writes: the Lease must not wait for them.
  await run.change('lease', where, async (_, signal) => {
    term = newTerm();
    before = await lock.seize(signal);
  });
  if (lock.holder() !== identity) return undefined;
  const keeping = term.keep();
  const message = `${where} was taken by another process, or expired; run archwright clean again`;
  term.signal.addEventListener('abort', () => lost.abort(new Error(message)));
  return {
    /**
     * For how long the last holder may still write, milliseconds; 0: there was none. An interrupted run counts
     * too: it may have deposed a leader a moment ago.
     */
    deposedMs: before?.holder ? before.durationMs : 0,
    /** Stops renewing. A deleted Lease tells controllers that the cluster is clean; a released one is free. */
    end: async (how: 'delete' | 'release'): Promise<void> => {
      term.end();
      await keeping;
      if (!term.isOurs()) return;
      // Without an answer, the Lease expires by itself.
      await lock[how](AbortSignal.timeout(endTimeoutMs)).catch((error: unknown) => {
        if (!(error instanceof KubeError)) throw error;
      });
    },
  };
}
