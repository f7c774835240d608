/**
 * The order in which a scale-down deletes pods, to keep the share. A ReplicaSet deletes the lowest cost
 * first, before it compares nodes and ages (kubernetes pkg/controller/controller_utils.go
 * `ActivePodsWithRanks`). A pod's cost is its negative place in a sequence; each beginning has the share.
 *
 * The place depends only on the number of pods on the same side, so a new pod changes no other one.
 * ReplicaSets with a cost in their template are skipped. StatefulSets delete the highest ordinal.
 */
import { concurrently } from '../../../async/concurrently.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { keys } from '../../../names/keys.ts';
import { wantedPods, type Step } from '../../../policy/resources/rollout.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import type { RolledPod, RolledWorkload } from './pods.ts';

/** Below the place of every pod that has one: at 100% no pod of other architectures has a place. */
const noPlace = 1_000_000;
/** A sequence of 1% is a hundred times as long as its pods on that side. */
const longest = 100;
/** Few, so that gates, which share the limiter, come first. */
const workers = 4;

/** The pods that get a new cost. */
export function podsToOrder({ pods }: RolledWorkload, step: Step) {
  const groups = Map.groupBy(
    pods.filter(({ owner, running }) => owner.kind === 'ReplicaSet' && running !== undefined),
    ({ owner }) => owner.uid,
  );
  return [...groups.values()].flatMap((group) => {
    const present = new Map(group.map((pod) => [pod, costsOf(pod)]));
    if ([...present.values()].some(({ cost, ours }) => cost !== ours)) return [];
    const costOf = (pod: RolledPod): number => present.get(pod)?.cost ?? -Infinity;
    const sorted = group.toSorted(
      (a, b) => costOf(b) - costOf(a) || a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1),
    );
    const targets = sorted.filter(({ isTarget }) => isTarget);
    const others = sorted.filter(({ isTarget }) => !isTarget);
    const places = placesOf(step, targets.length, others.length);
    return [
      ...targets.map((pod, index) => ({ pod, cost: -(places.targets[index] ?? noPlace + index) })),
      ...others.map((pod, index) => ({ pod, cost: -(places.others[index] ?? noPlace + index) })),
    ].filter(({ pod, cost }) => costOf(pod) !== cost);
  });
}

/** The places on each side, from 1; fewer than pods if the step wants no more of a side. */
function placesOf(step: Step, targets: number, others: number) {
  const places = { targets: [] as number[], others: [] as number[] };
  const end = longest * (Math.max(targets, others) + 1);
  for (let count = 1; count <= end; count += 1) {
    if (places.targets.length >= targets && places.others.length >= others) break;
    const isTarget = wantedPods(step, count) > wantedPods(step, count - 1);
    (isTarget ? places.targets : places.others).push(count);
  }
  return places;
}

function costsOf({ running }: RolledPod) {
  const read = (key: string): number | undefined => {
    const value = running?.annotations?.[key];
    return value === undefined ? undefined : Number(value);
  };
  return { cost: read(keys.deletionCost), ours: read(keys.rolloutOrder) };
}

/** A changed or refused pod keeps its cost. @throws KubeError if there is no answer */
export async function orderPods(
  ordered: ReturnType<typeof podsToOrder>,
  { client, signal }: Pick<LeaderContext, 'client' | 'signal'>,
): Promise<void> {
  await concurrently(ordered, workers, async ({ pod: { namespace, name, uid }, cost }) => {
    const annotations = { [keys.deletionCost]: `${cost}`, [keys.rolloutOrder]: `${cost}` };
    const patch = { type: 'merge', body: { metadata: { uid, annotations } } } as const;
    const patching = client.patch(paths.pods(namespace, name), patch, { signal });
    await ignoring(['not-found', 'conflict', 'forbidden', 'invalid'], patching);
  });
}
