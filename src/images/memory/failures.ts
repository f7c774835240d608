/**
 * Failures of lookups, remembered so that a registry is not asked again at once for what it has just refused.
 *
 * Not found and denied are answers: they hold for a short fixed time, in which the image may be pushed or access be
 * granted. Other failures back off from one second, with jitter so that images that failed together are not looked up
 * together. `Retry-After` (RFC 9110 §10.2.3) is obeyed up to an hour.
 */
import { backOffMs } from '../../async/back-off.ts';
import type { Clock } from '../../async/clock.ts';
import type { FactsError, FactsErrorCode } from '../facts/facts.ts';
import {
  createLru,
  compact,
  mapEntryBytes,
  numberBytes,
  objectBytes,
  textBytes,
  type Linked,
} from './lru.ts';

/** Design: not found and denied hold for 30 s. */
const answerHoldsMs = 30_000;
/** One request per minute and image is no burden for a registry that is in trouble, and recovery is noticed soon. */
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

export interface Failures {
  /** Remembers a failure; how long depends on its code and on how many went before. */
  note(key: string, error: FactsError, perAccount?: boolean): Failure;
  /** The failure that still holds. */
  holding(key: string): Failure | undefined;
  /** Called after a successful lookup. */
  forget(key: string): void;
  readonly size: number;
  readonly bytes: number;
}

interface Noted extends Failure, Linked<Noted> {
  readonly attempts: number;
}

/** Whether an error is a registry's answer about the image and the credentials, rather than trouble. */
export function isAnswer(code: FactsErrorCode): boolean {
  return (
    code === 'not-found' || code === 'unauthorized' || code === 'forbidden' || code === 'invalid-reference'
  );
}

/**
 * Makes an empty memory of failures.
 * @param maxBytes what it may hold; the least recently used leave first
 */
export function createFailures(maxBytes: number, clock: Pick<Clock, 'monotonic' | 'random'>): Failures {
  const noted = createLru<Noted>();

  function pauseMs({ code, retryAfterMs = 0 }: FactsError, attempts: number): number {
    const askedMs = Math.min(retryAfterMs, longestRetryAfterMs);
    if (isAnswer(code)) return Math.max(answerHoldsMs, askedMs);
    return Math.max(backOffMs(backOff, attempts) * (1 - jitter * clock.random()), askedMs);
  }

  return {
    note: (key, error, perAccount = false) => {
      const now = clock.monotonic();
      const previous = noted.get(key);
      const repeated = previous !== undefined && now < previous.until + backOff.mostMs;
      const attempts = repeated ? previous.attempts + 1 : 1;
      const made = makeNoted(key, error, now + pauseMs(error, attempts), attempts, perAccount);
      noted.put(made);
      for (let oldest = noted.oldest(); oldest && noted.bytes > maxBytes; oldest = noted.oldest()) {
        noted.remove(oldest);
      }
      return made;
    },
    holding: (key) => {
      const failure = noted.get(key);
      if (!failure || clock.monotonic() >= failure.until) return undefined;
      noted.touch(failure);
      return failure;
    },
    forget: (key) => {
      const failure = noted.get(key);
      if (failure) noted.remove(failure);
    },
    get size() {
      return noted.size;
    },
    get bytes() {
      return noted.bytes;
    },
  };
}

function makeNoted(
  key: string,
  error: FactsError,
  until: number,
  attempts: number,
  perAccount: boolean,
): Noted {
  const message = compact(error.message.slice(0, maxMessageLength));
  return {
    key: compact(key),
    error: { code: error.code, message },
    until,
    attempts,
    perAccount,
    bytes:
      objectBytes(9) + objectBytes(2) + textBytes(key) + textBytes(message) + numberBytes + mapEntryBytes,
    listed: false,
    newer: undefined,
    older: undefined,
  };
}
