/**
 * Taints (off by default): nodes of the architectures in `taintArchitectures` get `<taintKey>=<architecture>:NoSchedule`, so only pods
 * that can run there are scheduled there. The webhook gives new pods their tolerations. This feature brings a running cluster
 * into that state and out of it again. For each architecture:
 *
 * 1. `tolerate-pods.ts`: every ordinary pod on its nodes gets the toleration. Pods that the webhook skips are skipped here too; pods
 *    of DaemonSets and static pods need none.
 * 2. `blockers.ts`: DaemonSets and pods that would lose a node block the taint; `events.ts` reports them.
 * 3. `reconcile.ts`: then the nodes get the taint. From the first node on, the architecture is established: a new node gets
 *    the taint at once, before pods without the toleration land there.
 *
 * A taint of our key with another value or effect is replaced. Nodes with a control plane taint get none. If an architecture leaves the
 * list, our taints go at once (`own-taint.ts` knows which are ours). If the key changes, our old taints go when the new one
 * comes or is blocked, because new pods tolerate only the new one.
 *
 * All state is in the cluster: each run compares it with the settings (`plan.ts`), so the next leader continues anywhere.
 */
import type { Feature } from '../leadership/leading.ts';
import { createReconciler } from '../reconcile/reconciler.ts';
import { nodeMatters } from './plan.ts';
import { TaintReconciler } from './reconcile.ts';

/** Pods and the configuration are compared this often; nodes also when they change. */
const intervalMs = 10_000;

/** Keeps the taints of nodes, and the tolerations of running pods, while this replica leads. */
export const taints: Feature = async (leading) => {
  const { signal, caches } = leading;
  const work = new TaintReconciler(leading);
  // Two keys: thousands of pods take minutes, and a new node must not wait for them.
  const reconciler = createReconciler({
    leading,
    inRounds: true,
    workers: 2,
    resyncMs: intervalMs,
    reconcile: async (key) => {
      await (key === 'nodes' ? work.reconcileNodes() : work.reconcilePods());
      return undefined;
    },
  });
  caches.nodes.onEach(({ previous, object }) => {
    if (nodeMatters(previous, object)) reconciler.add('nodes');
  });
  await caches.ready(signal).catch(() => undefined);
  await reconciler.run(['nodes', 'pods']);
};
