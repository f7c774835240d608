/** Why a rollout, or a workload that it names, has no pods: a name may be misspelled, or in an older rollout. */
import { selects } from '../../../policy/effective/label-selector.ts';
import type { Rollout } from '../../../policy/resources/rollout.ts';
import type { PodCount, RolledWorkload } from './pods.ts';
import type { WorkloadStatus } from './status.ts';

type Scope = Pick<Rollout, 'name' | 'selector' | 'names'>;

export interface Missing {
  /** For each name without pods. */
  readonly workloads: readonly WorkloadStatus[];
  /** If the rollout has no pods at all. */
  readonly message: string;
}

export function missingIn(rollout: Scope, found: readonly RolledWorkload[], count: PodCount): Missing {
  const has = new Set(found.map(({ name }) => name.slice(name.indexOf('/') + 1)));
  const names = [...(rollout.names ?? [])].filter((name) => !has.has(name));
  if (names.length === 0 && found.length > 0) return { workloads: [], message: '' };
  const reasons = reasonsIn(rollout, count);
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
function reasonsIn({ name, selector }: Scope, { pods, rollouts }: PodCount): ReadonlyMap<string, Reason> {
  const own = rollouts.findIndex((each) => each.name === name);
  const found = new Map<string, Reason>();
  for (const { labels, workload, first } of pods) {
    const older = first < own ? rollouts[first] : undefined;
    if (!selects(selector, labels)) found.set(workload.name, unselected);
    else if (older) found.set(workload.name, older.name);
  }
  return found;
}
