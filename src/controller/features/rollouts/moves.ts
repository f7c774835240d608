/** Evicts running pods: back after a rollback, or to the share of a step with `rebalance`. */
import { ignoring } from '../../../kube/api/errors.ts';
import type { PodWithStatus } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { isReady } from '../../../kube/api/fields.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import { maxUnavailable, type Eviction } from '../../write/evictor.ts';
import type { RolledPod, RolledWorkload } from './pods.ts';

/**
 * The pods to move back after a rollback: those that the rollout put on the architecture. Unready ones go
 * first, ready ones within `misplacedPodsShare`.
 */
export function podsToReturn(workload: RolledWorkload, percent: number): readonly RolledPod[] {
  const moved = workload.pods.filter(({ isTarget, isMoved }) => isTarget && isMoved);
  const ready = moved.filter((pod) => pod.ready).slice(0, roomIn(workload, percent));
  return [...moved.filter((pod) => !pod.ready), ...ready];
}

/** The pods to move so that `wanted` are on the architecture. Unscheduled ones wait for the scheduler. */
export function podsToRebalance(
  workload: RolledWorkload,
  possible: ReadonlySet<RolledPod>,
  wanted: number,
  percent: number,
): readonly RolledPod[] {
  const targets = workload.pods.filter(({ isTarget }) => isTarget).length;
  const surplus = workload.pods.filter(
    (pod) => pod.running !== undefined && pod.isTarget === targets > wanted && possible.has(pod),
  );
  return surplus.slice(0, Math.min(Math.abs(targets - wanted), roomIn(workload, percent)));
}

/** Why no ready pod may go now; `undefined`: one may. */
export function fullBecause(workload: RolledWorkload, percent: number): string | undefined {
  if (roomIn(workload, percent) > 0) return undefined;
  const unready = workload.pods.filter(({ ready }) => !ready).length;
  return `misplacedPodsShare allows no eviction: ${unready} of its pods are not ready, ${workload.going} are being deleted`;
}

/** How many ready pods may go now. */
function roomIn({ pods, going }: RolledWorkload, percent: number): number {
  const disrupted = going + pods.filter(({ ready }) => !ready).length;
  return Math.max(0, maxUnavailable(pods.length + going, percent) - disrupted);
}

/** Evicts a pod, if it is the same pod and as ready as in the cache. */
export async function move(leader: LeaderContext, pod: RolledPod): Promise<Eviction> {
  const { namespace, name, uid } = pod;
  const { client, signal, evictor, log } = leader;
  const eviction = await evictor.evict(namespace, async () => {
    const read = client.get<PodWithStatus>(paths.pods(namespace, name), { signal });
    const { metadata, status } = (await ignoring('not-found', read)) ?? {};
    if (metadata?.uid !== uid || metadata.deletionTimestamp !== undefined || isReady(status) !== pod.ready)
      return undefined;
    return { metadata };
  });
  if ('why' in eviction) log.info({ namespace, pod: name, why: eviction.why }, 'a pod is not moved now');
  return eviction;
}
