/** Evicts the pods that a rollout moves or moves back, and remembers what delays that. */
import { BoundedMap } from '../../../async/bounded-map.ts';
import { printable } from '../../../names/printable.ts';
import type { Rollout } from '../../../policy/resources/rollout.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
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
    const isEnded = phase === 'RolledBack' || phase === 'Aborted';
    if (!isEnded && (!rollout.rebalance || newPods === undefined)) return undefined;
    const percent = this.#leader.configuration().misplacedPodsShare;
    for (const each of this.#refusedLast(seen, keyOf)) {
      const key = keyOf(each);
      const waitMs = await (isEnded
        ? this.#moveBack(each, key, percent)
        : this.#rebalance(each, key, percent));
      if (waitMs > 0) return waitMs;
    }
    return undefined;
  }

  #moveBack({ workload }: Observation, key: string, percent: number): Promise<number> {
    return this.#moveEach(podsToReturn(workload, percent), key, Infinity);
  }

  async #rebalance(each: Observation, key: string, percent: number): Promise<number> {
    const { workload, possible, wanted, blocked } = each;
    if (blocked !== undefined) return 0;
    const pods = this.#refusedLast(workload.pods, ({ uid }) => uid);
    const surplus = podsToRebalance({ ...workload, pods }, possible, wanted, percent);
    return await this.#moveEach(surplus, key, pods.length * movesOfPod.most);
  }

  /**
   * Those of one workload, which usually have one budget: after a refusal, the others wait too.
   * @param most how many of its pods may be rebalanced in an hour; Infinity: they are moved back, and do not count
   * @returns milliseconds until the next pod may be evicted; 0: there is none to evict now
   */
  async #moveEach(pods: readonly RolledPod[], key: string, most: number): Promise<number> {
    for (const pod of this.#refusedLast(pods, ({ uid }) => uid)) {
      const { since, count } = this.#movesOf(key);
      if (count >= most) {
        this.#delays.set(
          key,
          'its pods were moved too often in the last hour, and their successors came back',
        );
        break;
      }
      const eviction = await move(this.#leader, pod);
      if (eviction.outcome === 'later') return eviction.ms;
      if (eviction.outcome === 'changed') continue;
      this.#meters.moved(eviction.outcome);
      if ('why' in eviction) {
        for (const id of [pod.uid, key]) this.#refusedAt.set(id, this.#leader.clock.monotonic());
        this.#delays.set(key, printable(eviction.why, 300));
        if (eviction.outcome === 'held') break;
      } else {
        this.#delays.delete(key);
        if (most < Infinity) this.#moves.set(key, { since, count: count + 1 });
      }
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
}

function keyOf({ workload: { name, namespace } }: Observation): string {
  return `${namespace}/${name}`;
}
