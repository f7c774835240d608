/** What the tests of image facts share: a clock and timers that stand still, questions, facts, and an inspector that is told its answers. */
import { createHash } from 'node:crypto';
import { pino } from 'pino';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import type {
  FactsErrorCode,
  ImageFacts,
  ImageQuestion,
  InspectOptions,
  Inspector,
} from '../../src/images/facts/facts.ts';
import {
  createFactsMemory,
  type FactsMemory,
  type FactsMemoryOptions,
} from '../../src/images/memory/memory.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { secret } from '../../src/telemetry/secret.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { noTimers } from '../support/fake-clock.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

export interface FakeTime {
  readonly clock: Clock;
  readonly startTimer: Clock['timer'];
  /** Lets time pass: both clocks advance, timers that are due run. */
  pass(ms: number): void;
  /** Sets the wall clock alone, as an administrator or NTP does. */
  jump(ms: number): void;
  readonly timers: number;
}

export function fakeTime(start = Date.parse('2026-11-21T12:00:00Z')): FakeTime {
  let monotonic = 5_000;
  let offset = start - monotonic;
  const timers = new Set<{ readonly at: number; readonly action: () => void }>();
  const startTimer = (ms: number, action: () => void): (() => void) => {
    const timer = { at: monotonic + ms, action };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  const clock = {
    ...noTimers,
    now: () => monotonic + offset,
    monotonic: () => monotonic,
    timer: startTimer,
  };
  return {
    clock,
    startTimer,
    pass: (ms) => {
      monotonic += ms;
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        if (timer.at > monotonic || !timers.delete(timer)) continue;
        timer.action();
      }
    },
    jump: (ms) => {
      offset += ms;
    },
    get timers() {
      return timers.size;
    },
  };
}

/** A credential of a pull secret, by its identity. */
export function pullCredential(id: string): MatchedCredential {
  return {
    credential: { username: id, password: secret(`password of ${id}`) },
    source: 'pull-secret',
    key: 'docker.io',
    origin: `default/${id}`,
    id,
  };
}

export function question(
  image: string,
  more: { readonly pullPolicy?: ImageQuestion['pullPolicy']; readonly credentials?: readonly string[] } = {},
): ImageQuestion {
  return {
    image,
    reference: parseReference(image),
    pullPolicy: more.pullPolicy ?? 'IfNotPresent',
    pullCredentials: (more.credentials ?? []).map(pullCredential),
  };
}

export function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Facts as an inspector gives them that has just asked a registry. */
export function facts(image: string, more: Partial<ImageFacts> = {}): ImageFacts {
  return {
    image,
    digest: parseReference(image).digest ?? digestOf(image),
    mediaType: 'application/vnd.oci.image.index.v1+json',
    platforms: [
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64' },
    ],
    source: 'registry',
    credentialSource: 'anonymous',
    endpoint: 'registry-1.docker.io',
    freshUntil: '2026-11-21T12:15:00.000Z',
    stale: false,
    ...more,
  };
}

export function failure(image: string, code: FactsErrorCode, retryAfterMs?: number): ImageFacts {
  const { digest: _, mediaType: __, ...rest } = facts(image);
  const error = { code, message: `it is ${code}`, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return { ...rest, platforms: [], endpoint: '', error };
}

export interface Asked {
  readonly question: ImageQuestion;
  readonly options: InspectOptions;
  /** Ends the question with this answer. */
  answer(facts: ImageFacts): Promise<void>;
  fail(error: Error): Promise<void>;
}

export interface HandInspector extends Inspector {
  /** Questions that were asked, in order. */
  readonly asked: Asked[];
  /** The question asked last. */
  last(): Asked;
}

/** An inspector whose answers are given by hand, so that a test decides when a question ends. */
export function handInspector(): HandInspector {
  const asked: Asked[] = [];
  return {
    asked,
    last: () => {
      const last = asked.at(-1);
      if (!last) throw new Error('nothing was asked');
      return last;
    },
    inspect: (question, options) => {
      const { promise, resolve, reject } = Promise.withResolvers<ImageFacts>();
      asked.push({
        question,
        options,
        answer: (facts) => {
          resolve(facts);
          return settled();
        },
        fail: (error) => {
          reject(error);
          return settled();
        },
      });
      return promise;
    },
  };
}

/** Lets all promises that are settled run their reactions. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** A log whose lines are kept. */
export function recordedLog(): {
  readonly log: Log;
  readonly lines: { readonly msg: string; readonly level: number }[];
} {
  const lines: { msg: string; level: number }[] = [];
  const log = pino(
    { base: null },
    { write: (line: string) => lines.push(JSON.parse(line) as { msg: string; level: number }) },
  );
  return { log, lines };
}

export interface Bench {
  readonly memory: FactsMemory;
  readonly inspector: HandInspector;
  readonly time: FakeTime;
  readonly lines: { readonly msg: string }[];
  /** Asks and lets the inspector answer at once. */
  readonly teach: (asked: ImageQuestion, answer: ImageFacts) => Promise<ImageFacts>;
}

/** A memory on fake time with an inspector answered by hand. No jitter unless asked for. */
export function bench(options: Partial<FactsMemoryOptions> = {}): Bench {
  const inspector = handInspector();
  const time = fakeTime();
  const { log, lines } = recordedLog();
  const memory = createFactsMemory({
    inspector,
    log,
    clock: time.clock,
    startTimer: time.startTimer,
    random: () => 0,
    ...options,
  });
  return {
    memory,
    inspector,
    time,
    lines,
    teach: async (asked, answer) => {
      const before = inspector.asked.length;
      const result = memory.ask(asked, { signal: new AbortController().signal });
      await settled();
      if (inspector.asked.length === before) throw new Error('memory answered by itself');
      await inspector.last().answer(answer);
      return result;
    },
  };
}
