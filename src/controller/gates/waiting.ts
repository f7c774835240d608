/**
 * The waiting pods, in memory only: a new leader finds them again. A pod's age comes from the API server's
 * clock when it is first seen, and then from our monotonic clock, so a clock that is set does not change it.
 */
import type { Clock } from '../../async/clock.ts';
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { hashText } from '../../placement/record/hash.ts';
import { timeOf } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import { ageBuckets, type AgeBucket, type WaitingReason } from './metrics.ts';

export const mostMs = 15_000;
const firstLookMs = 1000;
const doublings = 4;
/** So much later at most, for pods that were created at the same time. */
const spread = 0.2;

/** Facts that a lookup found; `images`: the signature of the images that it was for. */
interface Answer {
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
      /** Why it waits, as its last event says; `undefined`: it had none. */
      readonly reported: string | undefined;
    }
  /** The gate is removed; the cache may still show it. */
  | { readonly kind: 'ungated' }
  /** Not gated. An event has reported that its images share no architecture. */
  | { readonly kind: 'reported' };

const newState: WaitingState = {
  kind: 'waiting',
  reason: 'new',
  answer: undefined,
  isConfirmed: false,
  reported: undefined,
};

export class WaitingPod {
  readonly uid: string;
  readonly #bornAt: number;
  readonly #clock: Clock;
  #state: WaitingState = newState;

  constructor(uid: string, ageMs: number, clock: Clock) {
    this.uid = uid;
    this.#clock = clock;
    this.#bornAt = clock.monotonic() - ageMs;
  }

  get ageMs(): number {
    return this.#clock.monotonic() - this.#bornAt;
  }

  get reason(): WaitingReason | undefined {
    return this.#state.kind === 'waiting' ? this.#state.reason : undefined;
  }

  /** Why it waits, as its last event says. */
  get reported(): string | undefined {
    return this.#state.kind === 'waiting' ? this.#state.reported : undefined;
  }

  update(
    changes: { readonly reason: WaitingReason } | { readonly answer: Answer } | { readonly reported: string },
  ): void {
    if (this.#state.kind === 'waiting') this.#state = { ...this.#state, ...changes };
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

  get isReported(): boolean {
    return this.#state.kind === 'reported';
  }

  /** Marks the missing common architecture as reported. @returns true the first time */
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

  constructor({ clock, serverNow }: Pick<Leading, 'clock' | 'serverNow'>) {
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

  groups(): ReadonlyMap<string, readonly WaitingPod[]> {
    return Map.groupBy(this.#pods.values(), ({ ageMs, reason }) => `${bucketOf(ageMs)} ${reason}`);
  }
}

function bucketOf(ageMs: number): AgeBucket {
  for (const [name, bound] of Object.entries(ageBuckets)) if (ageMs < bound) return name as AgeBucket;
  return 'older';
}

/**
 * Milliseconds until the next look at a pod: 1, 2, 4, 8 and 16 s after its creation, then every 15 s, spread
 * by its UID. Looks follow from its age alone, so a new leader goes on where the last one was.
 */
export function nextLookMs(ageMs: number, uid: string): number {
  const offset = 1 + spread * (Number.parseInt(hashText([uid]), 36) / 2 ** 32);
  for (let doubling = 0; doubling <= doublings; doubling += 1) {
    const at = firstLookMs * 2 ** doubling * offset;
    if (at > ageMs) return at - ageMs;
  }
  const last = firstLookMs * 2 ** doublings * offset;
  return mostMs - ((ageMs - last) % mostMs);
}
