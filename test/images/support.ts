/** A cache with a fake clock, and a source that answers when a test wants. */
import { setImmediate as settled } from 'node:timers/promises';
import { FactsCache, type FactsCacheOptions } from '../../src/images/cache/cache.ts';
import type {
  ImageFacts,
  ImageFactsSource,
  ImageRequest,
  LookupOptions,
} from '../../src/images/facts/facts.ts';
import { recordingLog } from '../support/captured.ts';
import { confirmedAt, factsOf } from '../support/facts.ts';
import { createFakeClock, type FakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

/** A clock that starts when `factsOf` are confirmed. No jitter. */
export function clockOfFacts(): FakeClock {
  const clock = createFakeClock(() => 0);
  clock.setWall(Date.parse(confirmedAt));
  return clock;
}

interface HeldLookup {
  readonly request: ImageRequest;
  readonly options: LookupOptions;
  /** Ends the lookup with these facts. */
  answer(facts: ImageFacts): Promise<void>;
  fail(error: Error): Promise<void>;
}

interface ManualSource extends ImageFactsSource {
  /** All lookups, in order. */
  readonly lookups: HeldLookup[];
  last(): HeldLookup;
}

/** A source whose lookups end when a test says so. */
function manualSource(): ManualSource {
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

export { settled };

export interface Bench {
  readonly cache: FactsCache;
  readonly source: ManualSource;
  readonly clock: FakeClock;
  readonly lines: readonly Record<string, unknown>[];
  readonly get: (request: ImageRequest) => Promise<ImageFacts>;
  /** Looks up an image; the source answers with these facts. */
  readonly lookUp: (request: ImageRequest, answer: ImageFacts) => Promise<ImageFacts>;
}

export function bench(options: Partial<FactsCacheOptions> = {}): Bench {
  const source = manualSource();
  const clock = clockOfFacts();
  const { log, lines } = recordingLog();
  const cache = new FactsCache({ source, log, clock, ...options });
  const get = (request: ImageRequest) => cache.get(request, { signal: neverAborted });
  return {
    cache,
    source,
    clock,
    lines,
    get,
    lookUp: async (request, answer) => {
      const before = source.lookups.length;
      const result = get(request);
      await settled();
      if (source.lookups.length === before) throw new Error('the cache sent no request');
      await source.last().answer(answer);
      return result;
    },
  };
}

/** A bench whose cache has these facts of a request. */
export async function benchWith(request: ImageRequest, answer = factsOf(request.image)): Promise<Bench> {
  const made = bench();
  await made.lookUp(request, answer);
  return made;
}
