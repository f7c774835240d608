/** The pods of a rollout by workload, from the leader's caches, and which of them are on its architecture. */
import { BoundedMap } from '../../../async/bounded-map.ts';
import type { Clock } from '../../../async/clock.ts';
import type { LeaderContext } from '../../lead/feature.ts';
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
import { timeOf } from '../../../kube/api/fields.ts';
import { hasEnded, type RunningPod } from '../../state/cached.ts';
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

interface CountedPod extends FoundPod {
  readonly workload: NonNullable<ReturnType<typeof rolledWorkloadOf>>;
  /** Index of the oldest rollout in force that is for it; of younger ones it is not. */
  readonly first: number;
}

/** The pods and rollouts of a namespace. */
export interface PodCount {
  readonly at: number;
  /** Whether a pod has changed since. */
  isOutdated: boolean;
  /** By name, at most `maxRollouts`: uid and generation. */
  readonly versions: ReadonlyMap<string, string>;
  /** The valid ones of these, the oldest first. */
  readonly rollouts: readonly Rollout[];
  readonly pods: readonly CountedPod[];
  /** By name of the rollout. */
  readonly ofRollout: ReadonlyMap<string, readonly CountedPod[]>;
}

/** The role `edit` may create any number; the leader looks at each, and all pods, every few seconds. */
export const maxRollouts = 100;
/** All rollouts of a namespace follow a change of a pod after a second, so each then sees a new count. */
const countedMs = 1000;
const maxNamespaces = 1000;

/** Counts the pods of a namespace once a second, for all of its rollouts. */
export class PodCounts {
  readonly #caches: PodCaches & Pick<Caches, 'rollouts'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #everyMs: number;
  readonly #counts = new BoundedMap<string, PodCount>(maxNamespaces);

  constructor(
    { caches, clock }: Pick<LeaderContext, 'caches' | 'clock'>,
    /** Tests, whose clock stands still, count each time. */
    everyMs = countedMs,
  ) {
    this.#caches = caches;
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  /** A pod has changed. */
  outdate(namespace: string): void {
    const last = this.#counts.peek(namespace);
    if (last) last.isOutdated = true;
  }

  /** @param object the rollout that needs the count: it has to know its present spec */
  count(namespace: string, object: KubeObject): PodCount {
    const now = this.#clock.monotonic();
    const last = this.#counts.get(namespace);
    const isKnown = last?.versions.get(object.metadata?.name ?? '') === versionOf(object);
    if (last && isKnown && now - last.at < this.#everyMs) return last;
    const oldest = [...this.#caches.rollouts.values(namespace)]
      .toSorted((a, b) => byAge(ageOf(a), ageOf(b)))
      .slice(0, maxRollouts);
    const rollouts = oldest.flatMap((each) => readRollout(each).rollout ?? []);
    const ofRollout = new Map<string, CountedPod[]>(rollouts.map(({ name }) => [name, []]));
    const pods: CountedPod[] = [];
    for (const pod of podsIn(namespace, this.#caches)) {
      const { labels } = pod;
      const { owner } = pod.pod;
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
    const count = { at: now, isOutdated: false, versions, rollouts, pods, ofRollout };
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
  {
    namespace,
    name: rolloutName,
    architecture: wanted,
  }: Pick<Rollout, 'namespace' | 'name' | 'architecture'>,
  { ofRollout }: Pick<PodCount, 'ofRollout'>,
): readonly RolledWorkload[] {
  const found = new Map<string, { namespace: string; name: string; pods: RolledPod[]; going: number }>();
  for (const { workload, deleting, record, pod, architecture } of ofRollout.get(rolloutName) ?? []) {
    const name = `${workload.kind}/${workload.name}`;
    const entry = found.get(name) ?? { namespace, name, pods: [], going: 0 };
    found.set(name, entry);
    if (deleting) {
      entry.going += 1;
      continue;
    }
    const isMoved = record?.name === rolloutName && record.side === 'Target';
    const isTarget = pod.running === undefined ? isMoved : architecture === wanted;
    entry.pods.push({ ...pod, isTarget, isMoved });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
