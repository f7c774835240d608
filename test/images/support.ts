/** Shared by the tests of image facts: a clock, requests, facts, and a source that responds when a test wants. */
import { setImmediate as settled } from 'node:timers/promises';
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
import { createFakeClock, type FakeClock } from '../support/fake-clock.ts';
import { recordingLog } from '../support/captured.ts';
import { neverAborted } from '../support/never-aborted.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

/** A clock that starts when the `facts` below are confirmed. No jitter. */
export function clockOfFacts(): FakeClock {
  const clock = createFakeClock(() => 0);
  clock.setWall(Date.parse('2026-11-21T12:00:00Z'));
  return clock;
}

/** A credential of a pull secret with this id. */
export function pullCredential(id: string): MatchedCredential {
  return {
    credential: { username: id, password: secret(`password of ${id}`) },
    source: 'pull-secret',
    key: 'docker.io',
    origin: `default/${id}`,
    id,
  };
}

export function requestFor(
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

/** Facts that a registry has just confirmed. */
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

export interface HeldLookup {
  readonly request: ImageRequest;
  readonly options: LookupOptions;
  /** Ends the lookup with these facts. */
  resolve(facts: ImageFacts): Promise<void>;
  reject(error: Error): Promise<void>;
}

export interface ManualSource extends ImageFactsSource {
  /** All lookups, in order. */
  readonly lookups: HeldLookup[];
  /** The last lookup. */
  last(): HeldLookup;
}

/** A source whose lookups end when a test calls `resolve` or `reject`. */
export function manualSource(): ManualSource {
  const lookups: HeldLookup[] = [];
  return {
    lookups,
    last: () => {
      const last = lookups.at(-1);
      if (!last) throw new Error('no lookup');
      return last;
    },
    lookup: (request, options) => {
      const { promise, resolve, reject } = Promise.withResolvers<ImageFacts>();
      lookups.push({
        request,
        options,
        resolve: (facts) => {
          resolve(facts);
          return settled();
        },
        reject: (error) => {
          reject(error);
          return settled();
        },
      });
      return promise;
    },
  };
}

export { settled };

export interface Bench {
  readonly memory: FactsMemory;
  readonly inspector: ManualSource;
  readonly time: FakeClock;
  readonly lines: readonly Record<string, unknown>[];
  /** Looks up an image; the source responds with these facts. */
  readonly lookUp: (request: ImageRequest, response: ImageFacts) => Promise<ImageFacts>;
  /** An hour later: recalls due facts; the source responds to the revalidation. */
  readonly revalidate: (request: ImageRequest, response: ImageFacts) => Promise<void>;
}

/** A bench whose memory has these facts of a request. */
export async function benchWith(
  request: ImageRequest,
  response: ImageFacts = facts(request.image),
): Promise<Bench> {
  const made = bench();
  await made.lookUp(request, response);
  return made;
}

/** A memory with a fake clock and a manual source. */
export function bench(options: Partial<FactsMemoryOptions> = {}): Bench {
  const inspector = manualSource();
  const time = clockOfFacts();
  const { log, lines } = recordingLog();
  const memory = new FactsMemory({ source: inspector, log, clock: time, ...options });
  return {
    memory,
    inspector,
    time,
    lines,
    lookUp: async (request, response) => {
      const before = inspector.lookups.length;
      const result = memory.lookup(request, { signal: neverAborted });
      await settled();
      if (inspector.lookups.length === before) throw new Error('the memory sent no request');
      await inspector.last().resolve(response);
      return result;
    },
    revalidate: async (request, response) => {
      await time.advance(hour);
      memory.recall(request);
      await inspector.last().resolve(response);
    },
  };
}
