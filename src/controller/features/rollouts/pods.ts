/** The pods of a rollout by workload, from the leader's caches, and which of them are on its architecture. */
import type { KubeObject, OwnerReference } from '../../../kube/api/objects.ts';
import { uncheckedRecord } from '../../../placement/record/read.ts';
import type { RolledOut } from '../../../placement/decision.ts';
import {
  byAge,
  isInRollout,
  readRollout,
  rolledWorkloadOf,
  type Rollout,
} from '../../../policy/resources/rollout.ts';
import { hasEnded, timeOf, type RunningPod } from '../../state/cached.ts';
import type { Caches } from '../../state/caches.ts';
import { controllerOf } from '../../pods/workload.ts';

export interface RolledPod extends Pick<RunningPod, 'namespace' | 'name' | 'uid' | 'createdAt' | 'ready'> {
  readonly owner: OwnerReference;
  /** When it got its node, or if it has none, `createdAt`. */
  readonly scheduledAt: number;
  /** Since when it is ready, or not: not before it got its node. */
  readonly readySince: number;
  readonly restarts: number;
  /** On the architecture of the rollout; without a node: chosen for it. */
  readonly isTarget: boolean;
  /** The rollout chose for it. */
  readonly isMoved: boolean;
  /** Absent: the scheduler has no node for it yet. */
  readonly running?: RunningPod;
}

export interface RolledWorkload {
  readonly namespace: string;
  /** `Deployment/web` */
  readonly name: string;
  /** Those that live: not ended, and not being deleted. */
  readonly pods: readonly RolledPod[];
  /** How many are being deleted. */
  readonly going: number;
}

export type PodCaches = Pick<Caches, 'runningPods' | 'waitingPods' | 'nodes'>;

interface FoundPod {
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly deleting: boolean;
  /** The choice of a rollout. */
  readonly record: RolledOut | undefined;
  readonly pod: Omit<RolledPod, 'isTarget' | 'isMoved'>;
  /** `undefined`: without a node, or its node is not known. */
  readonly architecture: string | undefined;
}

/** All pods of a namespace that a rollout could be for. Gated pods do not count yet. */
export function* podsIn(
  namespace: string,
  { runningPods, waitingPods, nodes }: PodCaches,
): Iterable<FoundPod> {
  for (const running of runningPods.values(namespace)) {
    const { owner, labels, annotations, deleting, node } = running;
    if (owner === undefined || hasEnded(running)) continue;
    const { name, uid, createdAt, ready, readyChangedAt, containers } = running;
    const scheduledAt = Math.max(createdAt, running.scheduledAt);
    const restarts = containers.reduce((most, { restartCount }) => Math.max(most, restartCount), 0);
    const readySince = Math.max(scheduledAt, readyChangedAt);
    const identity = { namespace, name, uid, owner };
    yield {
      labels,
      deleting,
      record: annotations && uncheckedRecord({ metadata: { annotations } }).rollout,
      pod: { ...identity, createdAt, scheduledAt, ready, readySince, restarts, running },
      architecture: nodes.get('', node)?.architecture,
    };
  }
  for (const { pod, rollout: record } of waitingPods.values(namespace)) {
    const { metadata = {} } = pod;
    const owner = controllerOf(pod);
    if (owner === undefined || record === undefined) continue;
    const { name = '', uid = '', labels, deletionTimestamp, creationTimestamp } = metadata;
    const createdAt = timeOf(creationTimestamp);
    const identity = { namespace, name, uid, owner };
    yield {
      labels,
      record,
      architecture: undefined,
      deleting: deletionTimestamp !== undefined,
      pod: {
        ...identity,
        createdAt,
        scheduledAt: createdAt,
        ready: false,
        readySince: createdAt,
        restarts: 0,
      },
    };
  }
}

/** @param isOlder whether an older rollout is for a pod. @returns sorted by name */
export function workloadsOf(
  rollout: Pick<Rollout, 'namespace' | 'name' | 'architecture' | 'selector' | 'names'>,
  caches: PodCaches,
  isOlder: (owner: OwnerReference, labels: FoundPod['labels']) => boolean,
): readonly RolledWorkload[] {
  const found = new Map<string, { namespace: string; name: string; pods: RolledPod[]; going: number }>();
  for (const { labels, deleting, record, pod, architecture } of podsIn(rollout.namespace, caches)) {
    const { owner } = pod;
    const workload = rolledWorkloadOf(owner, labels);
    if (!workload || !isInRollout(rollout, owner, labels) || isOlder(owner, labels)) continue;
    const name = `${workload.kind}/${workload.name}`;
    const entry = found.get(name) ?? { namespace: rollout.namespace, name, pods: [], going: 0 };
    found.set(name, entry);
    if (deleting) {
      entry.going += 1;
      continue;
    }
    const isMoved = record?.name === rollout.name;
    const isTarget =
      pod.running === undefined ? isMoved && record.side === 'Target' : architecture === rollout.architecture;
    entry.pods.push({ ...pod, isTarget, isMoved: isMoved && record.side === 'Target' });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The role `edit` may create any number; the leader looks at each, and all pods, every few seconds. */
export const maxRollouts = 100;

/** The older ones of the namespace, at most `maxRollouts`. */
export function olderRollouts(
  rollout: Pick<Rollout, 'name' | 'createdAt'>,
  ofNamespace: Iterable<KubeObject>,
): readonly KubeObject[] {
  const found: KubeObject[] = [];
  for (const object of ofNamespace) {
    const { name = '', creationTimestamp } = object.metadata ?? {};
    const isOlder = byAge({ name, createdAt: timeOf(creationTimestamp) }, rollout) < 0;
    if (isOlder && found.push(object) === maxRollouts) break;
  }
  return found;
}

/** Whether one of the rollouts is for a pod. */
export function isInSome(rollouts: readonly KubeObject[]) {
  const all = rollouts.flatMap((object) => readRollout(object).rollout ?? []);
  return (owner: OwnerReference, labels: FoundPod['labels']): boolean =>
    all.some((each) => each.newPods !== undefined && isInRollout(each, owner, labels));
}
