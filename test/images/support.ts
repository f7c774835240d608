/** What the tests of image facts share: a clock, questions, facts, and an inspector that is told its answers. */
import { createHash } from 'node:crypto';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import type {
  FactsErrorCode,
  ImageFacts,
  ImageRequest,
  LookupOptions,
  ImageFactsSource,
} from '../../src/images/facts/facts.ts';
import { FactsMemory, type FactsMemoryOptions } from '../../src/images/memory/memory.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { recordingLog } from '../serving/support.ts';
import { createFakeClock, type FakeClock } from '../support/fake-clock.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

/** A clock that starts when the `facts` below are confirmed. No jitter. */
export function clockOfFacts(): FakeClock {
  const clock = createFakeClock(() => 0);
  clock.setWall(Date.parse('2026-11-21T12:00:00Z'));
  return clock;
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
  more: { readonly pullPolicy?: ImageRequest['pullPolicy']; readonly credentials?: readonly string[] } = {},
): ImageRequest {
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
  readonly question: ImageRequest;
  readonly options: LookupOptions;
  /** Ends the question with this answer. */
  answer(facts: ImageFacts): Promise<void>;
  fail(error: Error): Promise<void>;
}

export interface HandInspector extends ImageFactsSource {
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
    lookup: (question, options) => {
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

export interface Bench {
  readonly memory: FactsMemory;
  readonly inspector: HandInspector;
  readonly time: FakeClock;
  readonly lines: readonly Record<string, unknown>[];
  /** Asks and lets the inspector answer at once. */
  readonly teach: (asked: ImageRequest, answer: ImageFacts) => Promise<ImageFacts>;
  /** An hour later: recalls facts that are due, and answers the revalidation. */
  readonly revalidate: (asked: ImageRequest, answer: ImageFacts) => Promise<void>;
}

/** A bench whose memory has learned an answer. */
export async function taught(asked: ImageRequest, answer: ImageFacts = facts(asked.image)): Promise<Bench> {
  const made = bench();
  await made.teach(asked, answer);
  return made;
}

/** A memory on a fake clock with an inspector answered by hand. */
export function bench(options: Partial<FactsMemoryOptions> = {}): Bench {
  const inspector = handInspector();
  const time = clockOfFacts();
  const { log, lines } = recordingLog();
  const memory = new FactsMemory({ source: inspector, log, clock: time, ...options });
  return {
    memory,
    inspector,
    time,
    lines,
    teach: async (asked, answer) => {
      const before = inspector.asked.length;
      const result = memory.lookup(asked, { signal: new AbortController().signal });
      await settled();
      if (inspector.asked.length === before) throw new Error('memory answered by itself');
      await inspector.last().answer(answer);
      return result;
    },
    revalidate: async (asked, answer) => {
      await time.advance(hour);
      memory.recall(asked);
      await inspector.last().answer(answer);
    },
  };
}
