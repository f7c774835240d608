/**
 * Taints (off by default): nodes of the architectures in `taintArchitectures` get `<taintKey>=<architecture>:NoSchedule`, so
 * that only pods which are known to run there are scheduled there. The webhook gives new pods their tolerations; what is
 * here brings a cluster that runs already into that state, and out of it again. For each architecture:
 *
 * 1. `tolerate-pods.ts`: every ordinary pod on its nodes gets the toleration. Pods that the webhook leaves alone are left
 *    alone here too; pods of DaemonSets and static pods need none.
 * 2. `holds.ts`: who would lose a node by the taint holds it back, and is told so by events, a metric and the log.
 * 3. `change-node.ts`: then the nodes get it. From the first node on the architecture counts as done: a node that comes
 *    later gets the taint at once, before pods without the toleration land there.
 *
 * A taint of our key with another value or effect is replaced. Nodes with a taint of the control plane get none. Where an
 * architecture is taken from the list, `own-taint.ts` knows what is ours and that goes at once; where the key changes, when the
 * new taint comes or is held back, because new pods tolerate the new one only.
 *
 * Nothing is remembered but in the cluster itself: each round compares what is there with what is wanted (`plan.ts`), so
 * a leader that ends anywhere is continued by the next one.
 */
import type { Feature } from '../leadership/leading.ts';
import { createPasses, type Passes } from '../reconcile/passes.ts';
import { createTaintReconciler } from './reconcile.ts';
import { taintLevels } from './metrics.ts';
import { nodeMatters } from './plan.ts';

export interface TaintsOptions {
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

/** Pods and the configuration are looked at this often; nodes when they change. */
const roundMs = 10_000;

/** Makes the feature. */
export function taints(options: TaintsOptions = {}): Feature {
  return async (leading) => {
    const { signal, clock, caches, log } = leading;
    const keeper = createTaintReconciler(leading);
    const passes = (): Passes =>
      createPasses({
        ...options,
        signal,
        clock,
        onFailure: (problem) => log.warn({ problem }, 'taints could not be brought up to date; trying again'),
      });
    // Thousands of pods take minutes; a new node must not wait for them.
    const [nodes, pods] = [passes(), passes()];
    caches.nodes.onEach(({ previous, object }) => {
      if (nodeMatters(previous, object)) nodes.kick();
    });
    await caches.ready(signal).catch(() => undefined);
    await Promise.all([
      nodes.run(async () => {
        await keeper.nodesRound();
        return { wrote: false, nextMs: roundMs };
      }),
      pods.run(async () => {
        await keeper.podsRound();
        return { wrote: false, nextMs: roundMs };
      }),
    ]);
    taintLevels(leading.metrics).clear();
  };
}
