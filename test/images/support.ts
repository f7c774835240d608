/** A cache with a fake clock, and a source that answers when a test wants. */
import { setImmediate as settled } from 'node:timers/promises';
import { FactsCache, type FactsCacheOptions } from '../../src/images/cache/cache.ts';
import type { ImageFacts, ImageRequest, LookupOptions } from '../../src/images/facts/facts.ts';
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

/** A lookup that a test ends. */
function held(request: ImageRequest, options: LookupOptions) {
  const { promise, resolve, reject } = Promise.withResolvers<ImageFacts>();
  return {
    request,
    options,
    promise,
    answer: (facts: ImageFacts) => settled(resolve(facts)),
    fail: (error: Error) => settled(reject(error)),
  };
}

function manualSource() {
  const lookups: ReturnType<typeof held>[] = [];
  return {
    /** All lookups, in order. */
    lookups,
    last: () => {
      const last = lookups.at(-1);
      if (!last) throw new Error('no lookup');
      return last;
    },
    lookup: (request: ImageRequest, options: LookupOptions) => {
      const lookup = held(request, options);
      lookups.push(lookup);
      return lookup.promise;
    },
  };
}

export { settled };

export type Bench = ReturnType<typeof bench>;

export function bench(options: Partial<FactsCacheOptions> = {}) {
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
    /** Looks up an image; the source answers with these facts. */
    lookUp: async (request: ImageRequest, answer: ImageFacts): Promise<ImageFacts> => {
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
