/**
 * Evicts running pods: back after a rollback, or to the share of a step with `rebalance`. It remembers what
 * delays that.
 */
import { BoundedMap } from '../../../async/bounded-map.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import { isReady, type PodWithStatus } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { printable } from '../../../names/printable.ts';
import type { Rollout } from '../../../policy/resources/rollout.ts';
import { counter, counts } from '../../../telemetry/metrics.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { maxUnavailable, type Eviction } from '../../write/evictor.ts';
import type { RolledPod, RolledWorkload } from './pods.ts';
import type { Progress } from './progress.ts';
import type { Observation } from './observation.ts';

const outcomes = ['evicted', 'held', 'failed'] as const;

export const moves = counter(
  'archwright_rollout_evictions_total',
  'Pods that rollouts moved; `held`: by a PodDisruptionBudget.',
  { outcome: outcomes },
);

/** A workload is not rebalanced endlessly if its pods return to where they were. */
const movesOfPod = { most: 2, inMs: 60 * 60_000 };
const maxRemembered = 5000;

/** What is remembered of a workload. */
interface Moves {
  /** When it was rebalanced first in this hour, and how many of its pods were since. */
  readonly since: number;
  readonly count: number;
  /** Why an eviction was refused last. */
  readonly delay?: string | undefined;
}

export class PodMover {
  readonly #leader: LeaderContext;
  readonly #moved: (outcome: (typeof outcomes)[number]) => void;
  readonly #moves = new BoundedMap<string, Moves>(maxRemembered);
  /** When an eviction was refused last, by uid of the pod and by workload. */
  readonly #refusedAt = new BoundedMap<string, number>(maxRemembered);

  constructor(leader: LeaderContext) {
    this.#leader = leader;
    this.#moved = counts(leader.metrics, moves, 'outcome', outcomes);
  }

  /** Why pods of a workload are not evicted now. */
  delayOf({ rebalance }: Pick<Rollout, 'rebalance'>, each: Observation): string {
    if (!rebalance) return 'without rebalance, only new pods move';
    return (
      fullBecause(each.workload, this.#leader.configuration().misplacedPodsShare) ??
      this.#moves.peek(keyOf(each))?.delay ??
      'they are being evicted at the rate of evictionsPerMinute'
    );
  }

  /** Which pods are still to be moved back. */
  remaining(each: Observation): string | undefined {
    const { length: count } = movedIn(each.workload);
    return count === 0
      ? undefined
      : `${count} pods are to be moved back; ${this.delayOf({ rebalance: true }, each)}`;
  }

  /** @returns milliseconds until it may move the next pod; `undefined`: there is none now */
  async move(
    rollout: Rollout,
    { phase, newPods }: Progress,
    seen: readonly Observation[],
  ): Promise<number | undefined> {
    const isEnded = phase === 'RolledBack' || phase === 'Aborted';
    if (!isEnded && (!rollout.rebalance || newPods === undefined)) return undefined;
    const percent = this.#leader.configuration().misplacedPodsShare;
    for (const each of this.#refusedLast(seen, keyOf)) {
      const { pods } = each.workload;
      const waitMs = await (isEnded
        ? this.#moveEach(this.#toReturn(each.workload, percent), keyOf(each), Infinity)
        : this.#moveEach(this.#surplus(each, percent), keyOf(each), pods.length * movesOfPod.most));
      if (waitMs > 0) return waitMs;
    }
    return undefined;
  }

  /**
   * Those of one workload, which usually have one budget: after a refusal, the others wait too.
   * @param most how many of its pods may be rebalanced in an hour; Infinity: they are moved back, and do not count
   * @returns milliseconds until the next pod may be evicted; 0: there is none to evict now
   */
  async #moveEach(pods: readonly RolledPod[], key: string, most: number): Promise<number> {
    for (const pod of this.#refusedLast(pods, ({ uid }) => uid)) {
      const now = this.#leader.clock.monotonic();
      const last = this.#moves.get(key);
      const { since, count } = last && now - last.since < movesOfPod.inMs ? last : { since: now, count: 0 };
      if (count >= most) {
        const delay = 'its pods were moved too often in the last hour, and their successors came back';
        this.#moves.set(key, { since, count, delay });
        break;
      }
      const eviction = await this.#evict(pod);
      if (eviction.outcome === 'later') return eviction.ms;
      if (eviction.outcome === 'changed') continue;
      this.#moved(eviction.outcome);
      if ('why' in eviction) {
        for (const id of [pod.uid, key]) this.#refusedAt.set(id, this.#leader.clock.monotonic());
        this.#moves.set(key, { since, count, delay: printable(eviction.why, 300) });
        if (eviction.outcome === 'held') break;
      } else this.#moves.set(key, { since, count: most < Infinity ? count + 1 : count });
    }
    return 0;
  }

  /** The pods to move back after a rollback: unready ones first, ready ones within `misplacedPodsShare`. */
  #toReturn(workload: RolledWorkload, percent: number): readonly RolledPod[] {
    const { ready = [], unready = [] } = Object.groupBy(movedIn(workload), (pod) =>
      pod.ready ? 'ready' : 'unready',
    );
    const mayGo = this.#refusedLast(ready, ({ uid }) => uid).slice(0, roomIn(workload, percent));
    return [...unready, ...mayGo];
  }

  /** The pods to move so that `wanted` are on the architecture. Unscheduled ones wait for the scheduler. */
  #surplus({ workload, possible, wanted, blocked }: Observation, percent: number): readonly RolledPod[] {
    if (blocked !== undefined) return [];
    const targets = workload.pods.filter(({ isTarget }) => isTarget).length;
    const surplus = workload.pods.filter(
      (pod) => pod.running !== undefined && pod.isTarget === targets > wanted && possible.has(pod),
    );
    const most = Math.min(Math.abs(targets - wanted), roomIn(workload, percent));
    return this.#refusedLast(surplus, ({ uid }) => uid).slice(0, most);
  }

  /** Evicts a pod, if it is the same pod and as ready as in the cache. */
  async #evict({ namespace, name, uid, ready }: RolledPod): Promise<Eviction> {
    const { client, signal, evict, log } = this.#leader;
    const eviction = await evict(namespace, async () => {
      const read = client.get<PodWithStatus>(paths.pods(namespace, name), { signal });
      const { metadata, status } = (await ignoring('not-found', read)) ?? {};
      const isSame = metadata?.uid === uid && metadata.deletionTimestamp === undefined;
      return isSame && isReady(status) === ready ? { metadata } : undefined;
    });
    if ('why' in eviction) log.info({ namespace, pod: name, why: eviction.why }, 'a pod is not moved now');
    return eviction;
  }

  /** What a budget holds back must not use up the evictions of the rest. */
  #refusedLast<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
    const refusedAt = (item: T): number => this.#refusedAt.peek(idOf(item)) ?? 0;
    return items.toSorted((a, b) => refusedAt(a) - refusedAt(b));
  }
}

function keyOf({ workload: { name, namespace } }: Observation): string {
  return `${namespace}/${name}`;
}

/** The pods that the rollout put on the architecture. */
function movedIn({ pods }: RolledWorkload): readonly RolledPod[] {
  return pods.filter(({ isTarget, isMoved }) => isTarget && isMoved);
}

/** Why no ready pod may go now; `undefined`: one may. */
function fullBecause(workload: RolledWorkload, percent: number): string | undefined {
  if (roomIn(workload, percent) > 0) return undefined;
  const unready = workload.pods.filter(({ ready }) => !ready).length;
  return `misplacedPodsShare allows no eviction: ${unready} of its pods are not ready, ${workload.going} are being deleted`;
}

/** How many ready pods may go now. */
function roomIn({ pods, going }: RolledWorkload, percent: number): number {
  const disrupted = going + pods.filter(({ ready }) => !ready).length;
  return Math.max(0, maxUnavailable(pods.length + going, percent) - disrupted);
}
