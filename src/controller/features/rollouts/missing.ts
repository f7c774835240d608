/** Why a rollout, or a workload that it names, has no pods: a name may be misspelled, or in an older rollout. */
import type { KubeObject } from '../../../kube/api/objects.ts';
import { selects } from '../../../policy/effective/label-selector.ts';
import {
  isInRollout,
  readRollout,
  rolledWorkloadOf,
  type Rollout,
} from '../../../policy/resources/rollout.ts';
import { podsIn, type PodCaches, type RolledWorkload } from './pods.ts';
import type { WorkloadStatus } from './status.ts';

type Scope = Pick<Rollout, 'namespace' | 'selector' | 'names'>;

export interface Missing {
  /** For each name without pods. */
  readonly workloads: readonly WorkloadStatus[];
  /** If the rollout has no pods at all. */
  readonly message: string;
}

/** @param older the older rollouts of the namespace */
export function missingIn(
  rollout: Scope,
  found: readonly RolledWorkload[],
  older: readonly KubeObject[],
  caches: PodCaches,
): Missing {
  const has = new Set(found.map(({ name }) => name.slice(name.indexOf('/') + 1)));
  const names = [...(rollout.names ?? [])].filter((name) => !has.has(name));
  if (names.length === 0 && found.length > 0) return { workloads: [], message: '' };
  const reasons = reasonsIn(rollout, older, caches);
  const workloads = names.map((name) => {
    const blocked = textOf(reasons.get(name));
    return { name, pods: 0, moved: 0, ready: 0, wanted: 0, blocked };
  });
  const others = [...new Set(reasons.values())].filter((each) => each !== unselected);
  const elsewhere =
    others.length === 0 ? [] : [`the pods that it selects are in older rollouts: ${others.join(', ')}`];
  const details =
    rollout.names === undefined ? elsewhere : workloads.map(({ name, blocked }) => `${name}: ${blocked}`);
  return { workloads, message: ['it has no pods so far', ...details].join('; ') };
}

const unselected = Symbol('unselected');
/** Name of an older rollout, or that the selector does not match. */
type Reason = string | typeof unselected;

function textOf(reason: Reason | undefined): string {
  if (reason === undefined) return 'no workload of this name has pods';
  if (reason === unselected) return 'the selector matches none of its pods';
  return `its pods are in the older rollout ${reason}`;
}

/** Why the rollout does not have the pods of the namespace, by name of the workload. */
function reasonsIn(
  { namespace, selector }: Scope,
  older: readonly KubeObject[],
  caches: PodCaches,
): ReadonlyMap<string, Reason> {
  const rollouts = older.flatMap((object) => readRollout(object).rollout ?? []);
  const found = new Map<string, Reason>();
  for (const { labels, pod } of podsIn(namespace, caches)) {
    const workload = rolledWorkloadOf(pod.owner, labels);
    if (workload === undefined) continue;
    const first = rollouts.find((each) => each.newPods !== undefined && isInRollout(each, pod.owner, labels));
    if (!selects(selector, labels)) found.set(workload.name, unselected);
    else if (first) found.set(workload.name, first.name);
  }
  return found;
}
