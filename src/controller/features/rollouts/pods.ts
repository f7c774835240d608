/** The pods of a rollout by workload, from the leader's caches, and which of them are on its architecture. */
import { BoundedMap } from '../../../async/bounded-map.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { type KubeObject, type OwnerReference, timeOf } from '../../../kube/api/objects.ts';
import { uncheckedRecord } from '../../../placement/record/read.ts';
import type { RolledOut } from '../../../placement/decision.ts';
import {
  byAge,
  isInRollout,
  readRollout,
  rolledWorkloadOf,
  type Rollout,
} from '../../../policy/resources/rollout.ts';
import { hasEnded, type RunningPod } from '../../state/cached.ts';
import type { Caches } from '../../state/caches.ts';
import { controllerOf } from '../../pods/workload.ts';

export interface RolledPod extends Pick<RunningPod, 'namespace' | 'name' | 'uid' | 'createdAt' | 'ready'> {
  readonly owner: OwnerReference;
  /** When it got its node, or if it has none, `createdAt`. */
  readonly scheduledAt: number;
  /** When it became ready, or unready: not before it got its node. */
  readonly readySince: number;
  readonly restarts: number;
  /** Whether it is on the architecture of the rollout; without a node: chosen for it. */
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

interface FoundPod extends Omit<RolledPod, 'isTarget' | 'isMoved'> {
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly deleting: boolean;
  /** The choice of a rollout. */
  readonly record: RolledOut | undefined;
  /** `undefined`: without a node, or its node is not known. */
  readonly architecture: string | undefined;
}

/** All pods of a namespace that a rollout could be for. Gated pods do not count yet. */
function* podsIn(
  namespace: string,
  { runningPods, waitingPods, nodes }: Pick<Caches, 'runningPods' | 'waitingPods' | 'nodes'>,
): Iterable<FoundPod> {
  for (const running of runningPods.values(namespace)) {
    const { name, uid, owner, labels, annotations, deleting, createdAt, ready } = running;
    if (owner === undefined || hasEnded(running)) continue;
    const scheduledAt = Math.max(createdAt, running.scheduledAt);
    const readySince = Math.max(scheduledAt, running.readyChangedAt);
    const restarts = Math.max(0, ...running.containers.map(({ restartCount }) => restartCount));
    const record = annotations && uncheckedRecord({ metadata: { annotations } }).rollout;
    const architecture = nodes.get('', running.node)?.architecture;
    const times = { createdAt, scheduledAt, readySince };
    const identity = { namespace, name, uid, owner, labels };
    yield { ...identity, ...times, deleting, record, ready, restarts, running, architecture };
  }
  for (const { pod, rollout: record } of waitingPods.values(namespace)) {
    const { name = '', uid = '', labels, deletionTimestamp, creationTimestamp } = pod.metadata ?? {};
    const owner = controllerOf(pod);
    if (owner === undefined || record === undefined) continue;
    const createdAt = timeOf(creationTimestamp);
    const times = { createdAt, scheduledAt: createdAt, readySince: createdAt };
    const identity = { namespace, name, uid, owner, labels };
    const state = { ready: false, restarts: 0, architecture: undefined };
    yield { ...identity, ...times, ...state, record, deleting: deletionTimestamp !== undefined };
  }
}

export interface CountedPod extends FoundPod {
  readonly workload: NonNullable<ReturnType<typeof rolledWorkloadOf>>;
  /** Index of the oldest rollout in force that is for it; of younger ones it is not. */
  readonly first: number;
}

/** The pods and rollouts of a namespace. */
export interface PodCount {
  readonly at: number;
  /** UID and generation by name; at most `maxRollouts`. */
  readonly versions: ReadonlyMap<string, string>;
  /** The valid ones of these, the oldest first. */
  readonly rollouts: readonly Rollout[];
  readonly pods: readonly CountedPod[];
  /** Keys: names of rollouts. */
  readonly ofRollout: ReadonlyMap<string, readonly CountedPod[]>;
}

/** The role `edit` may create any number; the leader looks at each, and all pods, every few seconds. */
export const maxRollouts = 100;
/** Neither all rollouts of a namespace nor all pods of a burst count its pods themselves. */
const countedMs = 200;
const maxNamespaces = 1000;

/** Counts the pods of a namespace for all of its rollouts. */
export class PodCounts {
  readonly #leader: Pick<LeaderContext, 'caches' | 'clock'>;
  readonly #counts = new BoundedMap<string, PodCount>(maxNamespaces);

  constructor(leader: Pick<LeaderContext, 'caches' | 'clock'>) {
    this.#leader = leader;
  }

  /** The rollouts that follow the pods of the namespace, as far as they were counted. */
  followedIn(namespace: string): Iterable<string> {
    return this.#counts.peek(namespace)?.ofRollout.keys() ?? [];
  }

  /** @param object the rollout that needs the count: it has to know its present spec */
  count(namespace: string, object: KubeObject): PodCount {
    const { caches, clock } = this.#leader;
    const now = clock.monotonic();
    const last = this.#counts.get(namespace);
    const isKnown = last?.versions.get(object.metadata?.name ?? '') === versionOf(object);
    if (last && isKnown && now - last.at < countedMs) return last;
    const oldest = [...caches.rollouts.values(namespace)]
      .toSorted((a, b) => byAge(ageOf(a), ageOf(b)))
      .slice(0, maxRollouts);
    const rollouts = oldest.flatMap((each) => readRollout(each).value ?? []);
    const ofRollout = new Map<string, CountedPod[]>(rollouts.map(({ name }) => [name, []]));
    const pods: CountedPod[] = [];
    for (const pod of podsIn(namespace, caches)) {
      const { owner, labels } = pod;
      const workload = rolledWorkloadOf(owner, labels);
      if (workload === undefined) continue;
      const own = rollouts.map((each) => isInRollout(each, owner, labels));
      const first = rollouts.findIndex(({ newPods }, index) => newPods !== undefined && own[index] === true);
      const counted = { ...pod, workload, first: first === -1 ? Infinity : first };
      pods.push(counted);
      for (const [index, { name }] of rollouts.entries())
        if (index <= counted.first && own[index] === true) ofRollout.get(name)?.push(counted);
    }
    const versions = new Map(oldest.map((each) => [each.metadata?.name ?? '', versionOf(each)]));
    const count = { at: now, versions, rollouts, pods, ofRollout };
    this.#counts.set(namespace, count);
    return count;
  }
}

function ageOf({ metadata: { name = '', creationTimestamp } = {} }: KubeObject) {
  return { name, createdAt: timeOf(creationTimestamp) };
}

function versionOf({ metadata: { uid, generation } = {} }: KubeObject): string {
  return `${uid}/${generation}`;
}

/** @returns sorted by name */
export function workloadsOf(
  { namespace, name: rolloutName, architecture }: Pick<Rollout, 'namespace' | 'name' | 'architecture'>,
  { ofRollout }: Pick<PodCount, 'ofRollout'>,
): readonly RolledWorkload[] {
  const groups = Map.groupBy(
    ofRollout.get(rolloutName) ?? [],
    ({ workload: { kind, name } }) => `${kind}/${name}`,
  );
  const found = [...groups].map(([name, all]): RolledWorkload => {
    const pods = all
      .filter(({ deleting }) => !deleting)
      .map((pod): RolledPod => {
        const isMoved = pod.record?.name === rolloutName && pod.record.side === 'Target';
        return { ...pod, isMoved, isTarget: pod.running ? pod.architecture === architecture : isMoved };
      });
    return { namespace, name, pods, going: all.length - pods.length };
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}
