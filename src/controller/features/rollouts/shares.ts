/**
 * Chooses for each new pod of a rollout whether it goes to the architecture. Only the leader chooses, while
 * the pod is gated: webhooks that counted alone would each move a pod where one is wanted.
 *
 * It counts pods of one ReplicaSet or StatefulSet: old pods of a rolling update do not count for new ones.
 */
import { BoundedMap } from '../../../async/bounded-map.ts';
import type { KubeObject, Pod } from '../../../kube/api/objects.ts';
import type { ChosenSide } from '../../../placement/decision.ts';
import type { RolloutPolicy } from '../../../policy/effective/policy.ts';
import { readRollout, wantedPods } from '../../../policy/resources/rollout.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { controllerOf } from '../../pods/workload.ts';
import { claimsOf } from '../../state/cached.ts';
import { PodCounts, type CountedPod } from './pods.ts';
import { readProgress } from './status.ts';
import { createVolumesPermit, type VolumesPermit } from './volumes.ts';

type SharesOptions = Pick<LeaderContext, 'caches' | 'clock' | 'client' | 'signal'>;

/** The caches show a chosen pod within a second; one that they never show was deleted. */
const rememberedMs = 30_000;
/** Pods without and with a node are two watches. */
const betweenWatchesMs = 1000;
/** Pods of one burst. */
const maxRemembered = 20_000;

interface Chosen {
  /** Uid. */
  readonly owner: string;
  readonly isTarget: boolean;
  readonly at: number;
  /** The time after which a count without it means that it is gone. */
  countedFrom?: number;
}

/** The pods of an owner in a count. */
interface Owned {
  readonly uids: Set<string>;
  total: number;
  targets: number;
}

export class RolloutShares {
  readonly #options: SharesOptions;
  /** Choices that the caches do not show yet, by UID of the pod. */
  readonly #chosen = new BoundedMap<string, Chosen>(maxRemembered);
  readonly #counts: PodCounts;
  /** Thousands of pods of one burst must not go through all pods thousands of times. */
  readonly #owned = new WeakMap<readonly CountedPod[], ReadonlyMap<string, Owned>>();
  readonly #volumesPermit: VolumesPermit;

  constructor(options: SharesOptions) {
    this.#options = options;
    this.#counts = new PodCounts(options);
    this.#volumesPermit = createVolumesPermit(options);
    const { runningPods, waitingPods } = options.caches;
    runningPods.onEach(({ object, previous }) => this.#seen((object ?? previous)?.uid, 0));
    waitingPods.onEach(({ object, previous }) => {
      if (object === undefined) this.#seen(previous?.pod.metadata?.uid, betweenWatchesMs);
    });
  }

  #seen(uid = '', afterMs: number): void {
    const chosen = this.#chosen.peek(uid);
    if (chosen) chosen.countedFrom ??= this.#options.clock.monotonic() + afterMs;
  }

  /** The same answer for the same pod. @throws KubeError if its volumes cannot be read */
  async choose(pod: Pod, { name, architecture }: RolloutPolicy): Promise<ChosenSide> {
    const { namespace = '', uid = '' } = pod.metadata ?? {};
    const owner = controllerOf(pod);
    const object = this.#options.caches.rollouts.get(namespace, name);
    const rollout = object && readRollout(object).value;
    const progress = object && readProgress(object);
    const step = rollout?.steps[progress?.step ?? 0];
    if (owner === undefined || object === undefined || step === undefined) return 'Other';
    // Nothing is awaited between the count and the choice.
    const isPossible = await this.#volumesPermit(namespace, claimsOf(pod.spec), architecture);
    const known = this.#chosen.get(uid);
    if (known) return known.isTarget ? 'Target' : 'Other';
    const { total, targets } = this.#countOf(object, owner.uid, architecture);
    const isTarget = isPossible && targets < wantedPods(step, total + 1);
    this.#chosen.set(uid, { owner: owner.uid, isTarget, at: this.#options.clock.monotonic() });
    return isTarget ? 'Target' : 'Other';
  }

  #countOf(rollout: KubeObject, ownerUid: string, architecture: string) {
    const { namespace = '', name = '' } = rollout.metadata ?? {};
    const { at: countedAt, ofRollout } = this.#counts.count(namespace, rollout);
    const known = this.#owners(ofRollout.get(name) ?? [], architecture).get(ownerUid);
    let { total, targets } = known ?? { total: 0, targets: 0 };
    const now = this.#options.clock.monotonic();
    for (const [uid, { owner, isTarget, at, countedFrom = Infinity }] of this.#chosen) {
      if (countedAt > countedFrom || now - at > rememberedMs) this.#chosen.delete(uid);
      else if (owner === ownerUid && !known?.uids.has(uid)) {
        total += 1;
        if (isTarget) targets += 1;
      }
    }
    return { total, targets };
  }

  /** Keys: UIDs of owners. Computed once for each count. */
  #owners(pods: readonly CountedPod[], architecture: string): ReadonlyMap<string, Owned> {
    const known = this.#owned.get(pods);
    if (known) return known;
    const owners = new Map<string, Owned>();
    for (const { uid, owner, deleting, running, architecture: of, record } of pods) {
      const owned = owners.get(owner.uid) ?? { uids: new Set(), total: 0, targets: 0 };
      owners.set(owner.uid, owned);
      owned.uids.add(uid);
      if (deleting) continue;
      owned.total += 1;
      if (running ? of === architecture : record?.side === 'Target') owned.targets += 1;
    }
    this.#owned.set(pods, owners);
    return owners;
  }
}
