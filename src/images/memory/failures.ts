/**
 * Failures that are remembered, so that a registry is not asked again and again for what it has just refused.
 *
 * Not found and denied are answers: they hold for a short fixed time, in which somebody may push the image or grant the access. Everything
 * else is taken for trouble that passes: the time doubles from one second, with some randomness so that images that failed together
 * are not asked for together. A registry that says when to come back (`Retry-After`, RFC 9110 §10.2.3) is obeyed within reason.
 */
import type { FactsError, FactsErrorCode } from '../facts/facts.ts';
import { createLru, type Linked } from './lru.ts';
import { compact, mapEntryBytes, numberBytes, objectBytes, textBytes } from './size.ts';

/** Design: not found and denied hold for 30 s. */
const answerHoldsMs = 30_000;
const firstPauseMs = 1000;
/** One request per minute and image is no burden for a registry that is in trouble, and recovery is noticed soon. */
const longestPauseMs = 60_000;
/** A registry may ask for more (Docker Hub's windows are six hours), but a pod should not wait for a day. */
const longestRetryAfterMs = 3_600_000;
/** At most this share of a pause is taken off at random. */
const jitter = 0.25;
/** A message is for people; more than this is not read. */
const maxMessageLength = 500;

export interface Failure {
  readonly error: FactsError;
  /** Monotonic time until which nobody is asked. */
  readonly until: number;
  /** Whether pods of other service accounts may do better. */
  readonly perAccount: boolean;
}

export interface Failures {
  /** Remembers a failure; how long depends on its kind and on how many went before. */
  note(key: string, error: FactsError, now: number, perAccount?: boolean): Failure;
  /** The failure that still holds, if one does. */
  holding(key: string, now: number): Failure | undefined;
  /** Called when the key has been asked for with success. */
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
 * @param maxBytes what it may hold; those not used for longest leave first
 * @param random a number from 0 up to 1
 */
export function createFailures(maxBytes: number, random: () => number): Failures {
  const noted = createLru<Noted>();

  return {
    note: (key, error, now, perAccount = false) => {
      const previous = noted.get(key);
      const repeated = previous !== undefined && now < previous.until + longestPauseMs;
      const attempts = repeated ? previous.attempts + 1 : 1;
      const until = now + pause(error, attempts, random);
      const made = makeNoted(key, error, until, attempts, perAccount);
      noted.put(made);
      for (let oldest = noted.oldest(); oldest && noted.bytes > maxBytes; oldest = noted.oldest()) {
        noted.remove(oldest);
      }
      return made;
    },
    holding: (key, now) => {
      const failure = noted.get(key);
      if (!failure || now >= failure.until) return undefined;
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

function pause(error: FactsError, attempts: number, random: () => number): number {
  const retryAfterMs = Math.min(error.retryAfterMs ?? 0, longestRetryAfterMs);
  if (isAnswer(error.code)) return Math.max(answerHoldsMs, retryAfterMs);
  const doubled = Math.min(firstPauseMs * 2 ** (attempts - 1), longestPauseMs);
  return Math.max(doubled * (1 - jitter * random()), retryAfterMs);
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
