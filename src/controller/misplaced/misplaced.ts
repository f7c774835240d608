/**
 * Misplaced pods: not ready, on a node with an architecture that their images lack. They were created while the webhook was down or not yet
 * installed, or a tag was pushed again without an architecture. Their owner never replaces them, because they exist. In each run:
 *
 * 1. `suspects.ts`: pods that had time to become ready but are not, and have an owner that would replace them.
 * 2. `misplaced-pod.ts`, `missing-architectures.ts`: which of their images certainly cannot run on the node.
 * 3. `verdict.ts`, one pod after the other: the pod as it is now; whether its successor would be placed elsewhere (`replacement.ts`);
 *    whether its Job would fail by the eviction (`job.ts`); whether pods of the workload were evicted for the same cause before
 *    (`causes.ts`); how many of them are disrupted (`evictions.ts`, `max-unavailable.ts`).
 * 4. `reconcile.ts`, `evict.ts`: the eviction. `events.ts`: the events.
 *
 * Under `misplacedPods = "event"` there are only events, and the same goes for DaemonSets always (`daemon.ts`).
 */
import type { Feature } from '../leadership/leading.ts';
import { createReconciler } from '../reconcile/reconciler.ts';
import { MisplacedReconciler } from './reconcile.ts';

const intervalMs = 5_000;

/** Evicts misplaced pods while this replica leads. */
export const misplacedPods: Feature = async (leading) => {
  const { signal, caches, log, configuration } = leading;
  const { namespace } = configuration();
  if (namespace === undefined) {
    log.warn('misplaced pods are not evicted: set namespace, the namespace of archwright');
    return;
  }
  await caches.ready(signal).catch(() => undefined);
  const work = new MisplacedReconciler(leading, namespace);
  const reconciler = createReconciler({
    leading,
    inRounds: true,
    reconcile: async () => ({ requeueAfterMs: (await work.reconcile()) ? 0 : intervalMs }),
  });
  await reconciler.run(['misplaced-pods']);
};
