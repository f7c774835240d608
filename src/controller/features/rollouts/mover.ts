/** Evicts the pods that a rollout moves or moves back, and remembers what delays that. */
import { BoundedMap } from '../../../async/bounded-map.ts';
import { printable } from '../../../names/printable.ts';
import type { Rollout } from '../../../policy/resources/rollout.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import type { Eviction } from '../../write/evictor.ts';
import type { RolloutMeters } from './metrics.ts';
import { fullBecause, move, podsToRebalance, podsToReturn } from './moves.ts';
import type { RolledPod } from './pods.ts';
import type { Progress } from './progress.ts';
import type { Observation } from './observation.ts';

/** A workload is not rebalanced endlessly if its pods return to where they were. */
const movesOfPod = { most: 2, inMs: 60 * 60_000 };
const maxRemembered = 5000;

export class PodMover {
  readonly #leader: LeaderContext;
  readonly #meters: Pick<RolloutMeters, 'moved'>;
  /** Rebalanced pods by workload. */
  readonly #moves = new BoundedMap<string, { readonly since: number; readonly count: number }>(maxRemembered);
  /** Why evictions of a workload were refused. */
  readonly #delays = new BoundedMap<string, string>(maxRemembered);
  /** When an eviction was refused last, by uid of the pod and by workload. */
  readonly #refusedAt = new BoundedMap<string, number>(maxRemembered);

  constructor(leader: LeaderContext, meters: Pick<RolloutMeters, 'moved'>) {
    this.#leader = leader;
    this.#meters = meters;
  }

  /** Why pods of a workload are not evicted now. */
  delayOf({ rebalance }: Pick<Rollout, 'rebalance'>, each: Observation): string {
    if (!rebalance) return 'without rebalance, only new pods move';
    return (
      fullBecause(each.workload, this.#leader.configuration().misplacedPodsShare) ??
      this.#delays.peek(keyOf(each)) ??
      'they are being evicted at the rate of evictionsPerMinute'
    );
  }

  /** Which pods are still to be moved back. */
  remaining(each: Observation): string | undefined {
    const count = each.workload.pods.filter(({ isTarget, isMoved }) => isTarget && isMoved).length;
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
    const percent = this.#leader.configuration().misplacedPodsShare;
    if (phase === 'RolledBack' || phase === 'Aborted') {
      for (const each of seen) {
        const waitMs = await this.#moveEach(podsToReturn(each.workload, percent), keyOf(each));
        if (waitMs > 0) return waitMs;
      }
      return undefined;
    }
    if (!rollout.rebalance || newPods === undefined) return undefined;
    for (const each of this.#refusedLast(seen, keyOf)) {
      if (each.blocked !== undefined) continue;
      const waitMs = await this.#rebalance(each, keyOf(each), percent);
      if (waitMs > 0) return waitMs;
    }
    return undefined;
  }

  /** @returns milliseconds until the next pod may be evicted; 0: there is none to evict now */
  async #rebalance(
    { workload, wanted, possible }: Observation,
    key: string,
    percent: number,
  ): Promise<number> {
    const pods = this.#refusedLast(workload.pods, ({ uid }) => uid);
    for (const pod of podsToRebalance({ ...workload, pods }, possible, wanted, percent)) {
      if (this.#movesOf(key).count >= pods.length * movesOfPod.most) {
        this.#delays.set(
          key,
          'its pods were moved too often in the last hour, and their successors came back',
        );
        break;
      }
      const eviction = await this.#moveOne(pod, key);
      if (eviction.outcome === 'later') return eviction.ms;
      const { outcome } = eviction;
      const { since, count } = this.#movesOf(key);
      if (outcome === 'evicted') this.#moves.set(key, { since, count: count + 1 });
      else if (outcome !== 'changed') this.#refusedAt.set(key, this.#leader.clock.monotonic());
    }
    return 0;
  }

  /** What a budget holds back must not use up the evictions of the rest. */
  #refusedLast<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
    const refusedAt = (item: T): number => this.#refusedAt.peek(idOf(item)) ?? 0;
    return items.toSorted((a, b) => refusedAt(a) - refusedAt(b));
  }

  /** The moves of a workload in this hour. */
  #movesOf(key: string): { readonly since: number; readonly count: number } {
    const now = this.#leader.clock.monotonic();
    const last = this.#moves.get(key);
    return last && now - last.since < movesOfPod.inMs ? last : { since: now, count: 0 };
  }

  /**
   * Those of one workload, which usually have one budget: after a refusal, the others wait too.
   * @returns milliseconds until the next pod may be evicted; 0: there is none to evict now
   */
  async #moveEach(pods: readonly RolledPod[], key: string): Promise<number> {
    for (const pod of this.#refusedLast(pods, ({ uid }) => uid)) {
      const eviction = await this.#moveOne(pod, key);
      if (eviction.outcome === 'later') return eviction.ms;
      if (eviction.outcome === 'held') break;
    }
    return 0;
  }

  /** @param key of its workload */
  async #moveOne(pod: RolledPod, key: string): Promise<Eviction> {
    const eviction = await move(this.#leader, pod);
    const { outcome } = eviction;
    if (outcome === 'changed' || outcome === 'later') return eviction;
    this.#meters.moved(outcome);
    if ('why' in eviction) {
      this.#refusedAt.set(pod.uid, this.#leader.clock.monotonic());
      this.#delays.set(key, printable(eviction.why, 300));
    } else this.#delays.delete(key);
    return eviction;
  }
}

function keyOf({ workload: { name, namespace } }: Observation): string {
  return `${namespace}/${name}`;
}
