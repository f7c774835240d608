/**
 * Failures of lookups, remembered so that a registry does not get the same request again at once.
 *
 * Not found and denied are answers: they hold for a short fixed time, in which the image may be pushed or
 * access be granted. Other failures back off from one second, with jitter so that images that failed together
 * are not looked up together. `Retry-After` (RFC 9110 §10.2.3) is obeyed up to an hour.
 */
import { backOffMs } from '../../async/back-off.ts';
import type { Clock } from '../../async/clock.ts';
import type { FactsError, FactsErrorCode } from '../facts/facts.ts';
import { Lru, unlinked, type Linked } from './lru.ts';
import { compact, mapEntryBytes, numberBytes, objectBytes, textBytes } from './size.ts';

/** Design: not found and denied hold for 30 s. */
const answerHoldsMs = 30_000;
/** One request per minute and image does not burden a registry; recovery is noticed soon. */
const backOff = { firstMs: 1000, mostMs: 60_000 };
/** A registry may ask for more (Docker Hub's windows are six hours), but a pod should not wait for a day. */
const longestRetryAfterMs = 3_600_000;
/** At most this share of a pause is taken off at random. */
const jitter = 0.25;
/** A message is for people; more than this is not read. */
const maxMessageLength = 500;

export interface Failure {
  readonly error: FactsError;
  /** Monotonic time of the next lookup. */
  readonly until: number;
  /** Whether pods of other service accounts may have access. */
  readonly perAccount: boolean;
}

interface Noted extends Failure, Linked<Noted> {
  readonly attempts: number;
}

const answers: ReadonlySet<FactsErrorCode> = new Set<FactsErrorCode>([
  'not-found',
  'unauthorized',
  'forbidden',
  'invalid-reference',
]);

/** Whether an error is a registry's answer about the image and the credentials, rather than trouble. */
export function isAnswer(code: FactsErrorCode): boolean {
  return answers.has(code);
}

export class Failures {
  readonly #maxBytes: number;
  readonly #clock: Pick<Clock, 'monotonic' | 'random'>;
  readonly #noted = new Lru<Noted>();

  /** @param maxBytes the least recently used leave first */
  constructor(maxBytes: number, clock: Pick<Clock, 'monotonic' | 'random'>) {
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  get size(): number {
    return this.#noted.size;
  }

  get bytes(): number {
    return this.#noted.bytes;
  }

  /** Remembers a failure; how long depends on its code and on how many went before. */
  note(key: string, error: FactsError, perAccount = false): Failure {
    const now = this.#clock.monotonic();
    const previous = this.#noted.get(key);
    const repeated = previous !== undefined && now < previous.until + backOff.mostMs;
    const attempts = repeated ? previous.attempts + 1 : 1;
    const message = compact(error.message.slice(0, maxMessageLength));
    const texts = textBytes(key) + textBytes(message);
    const made = {
      key: compact(key),
      // Its hint is one of a few texts of the program.
      error: { code: error.code, message, ...(error.hint !== undefined && { hint: error.hint }) },
      until: now + this.#pauseMs(error, attempts),
      attempts,
      perAccount,
      bytes: objectBytes(9) + objectBytes(2) + texts + numberBytes + mapEntryBytes,
      ...unlinked,
    };
    this.#noted.put(made);
    while (this.#noted.oldest && this.bytes > this.#maxBytes) this.#noted.remove(this.#noted.oldest);
    return made;
  }

  /** The failure that still holds. */
  holding(key: string): Failure | undefined {
    const failure = this.#noted.get(key);
    if (!failure || this.#clock.monotonic() >= failure.until) return undefined;
    this.#noted.touch(failure);
    return failure;
  }

  /** Called after a successful lookup. */
  forget(key: string): void {
    const failure = this.#noted.get(key);
    if (failure) this.#noted.remove(failure);
  }

  #pauseMs({ code, retryAfterMs = 0 }: FactsError, attempts: number): number {
    const askedMs = Math.min(retryAfterMs, longestRetryAfterMs);
    if (isAnswer(code)) return Math.max(answerHoldsMs, askedMs);
    return Math.max(backOffMs(backOff, attempts) * (1 - jitter * this.#clock.random()), askedMs);
  }
}
