/**
 * The pods that wait, in memory only: a new leader finds them again. The age of a pod comes from the API server's clock when
 * it is first seen, and from our monotonic clock after that, so a clock that is set does not change it.
 */
import type { Clock } from '../../async/clock.ts';
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { timeOf } from '../caches/kept-fields.ts';
import { ageBuckets, type AgeBucket, type WaitingReason } from './metrics.ts';

/** Facts that a lookup found; `images`: the signature of the images that it was for. */
export interface Answer {
  readonly images: string;
  readonly facts: FactsByImage;
}

type WaitingState =
  | {
      readonly kind: 'waiting';
      readonly reason: WaitingReason;
      readonly answer: Answer | undefined;
      /** Its images were looked up once more, because they seem to share no architecture. */
      readonly isConfirmed: boolean;
    }
  /** The gate is removed; the cache may still show it. */
  | { readonly kind: 'ungated' }
  /** Not gated, and its owner has read in an event that its images share no architecture. */
  | { readonly kind: 'reported' };

const newState: WaitingState = { kind: 'waiting', reason: 'new', answer: undefined, isConfirmed: false };

export class WaitingPod {
  readonly uid: string;
  readonly #bornAt: number;
  readonly #clock: Clock;
  #state: WaitingState = newState;

  /** @param ageMs of the pod now */
  constructor(uid: string, ageMs: number, clock: Clock) {
    this.uid = uid;
    this.#clock = clock;
    this.#bornAt = clock.monotonic() - ageMs;
  }

  /** Milliseconds since its creation. */
  get ageMs(): number {
    return this.#clock.monotonic() - this.#bornAt;
  }

  /** Why it waits; `undefined` if it does not. */
  get reason(): WaitingReason | undefined {
    return this.#state.kind === 'waiting' ? this.#state.reason : undefined;
  }

  waitsFor(reason: WaitingReason): void {
    if (this.#state.kind === 'waiting') this.#state = { ...this.#state, reason };
  }

  answered(answer: Answer): void {
    if (this.#state.kind === 'waiting') this.#state = { ...this.#state, answer };
  }

  /** Takes the answer, which is used once, and only for the images that it was for. */
  takeAnswer(images: string): FactsByImage | undefined {
    if (this.#state.kind !== 'waiting') return undefined;
    const { answer } = this.#state;
    this.#state = { ...this.#state, answer: undefined };
    return answer?.images === images ? answer.facts : undefined;
  }

  /** @returns true the first time */
  confirm(): boolean {
    if (this.#state.kind !== 'waiting' || this.#state.isConfirmed) return false;
    this.#state = { ...this.#state, isConfirmed: true };
    return true;
  }

  ungated(): void {
    if (this.#state.kind === 'waiting') this.#state = { kind: 'ungated' };
  }

  /** Its owner hears now that its images share no architecture. @returns true the first time */
  report(): boolean {
    if (this.#state.kind === 'reported') return false;
    this.#state = { kind: 'reported' };
    return true;
  }
}

export class WaitingPods {
  readonly #clock: Clock;
  readonly #serverNow: () => number;
  readonly #pods = new Map<string, WaitingPod>();

  constructor({ clock, serverNow }: { readonly clock: Clock; readonly serverNow: () => number }) {
    this.#clock = clock;
    this.#serverNow = serverNow;
  }

  /** The entry of a pod, made if there is none. A pod of the same name with another UID is another pod. */
  of(key: string, { metadata }: Pod): WaitingPod {
    const uid = metadata?.uid ?? '';
    const known = this.#pods.get(key);
    if (known?.uid === uid) return known;
    const createdAt = timeOf(metadata?.creationTimestamp);
    // A time that is missing or in the future is now.
    const ageMs = createdAt === 0 ? 0 : Math.max(0, this.#serverNow() - createdAt);
    const waiting = new WaitingPod(uid, ageMs, this.#clock);
    this.#pods.set(key, waiting);
    return waiting;
  }

  get(key: string): WaitingPod | undefined {
    return this.#pods.get(key);
  }

  forget(key: string): void {
    this.#pods.delete(key);
  }

  /** How many wait, by `age reason`. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { reason, ageMs } of this.#pods.values()) {
      if (reason === undefined) continue;
      const key = `${bucketOf(ageMs)} ${reason}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  }
}

function bucketOf(ageMs: number): AgeBucket {
  for (const [name, bound] of Object.entries(ageBuckets)) if (ageMs < bound) return name as AgeBucket;
  return 'older';
}
