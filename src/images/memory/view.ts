/** From what is remembered to image facts, in the shape in which they travel. */
import type { Clock } from '../../async/clock.ts';
import type { Entry } from './entry.ts';
import type { ImageFacts } from '../facts/facts.ts';
import type { Failure } from './failures.ts';
import { freshUntil, type FreshnessSettings } from './freshness.ts';

export interface Viewer {
  /** Facts of an entry, for an image as the pod writes it. */
  facts(entry: Entry, image: string, byDigest: boolean, stale: boolean): ImageFacts;
  /** A remembered failure as facts. */
  failure(failure: Failure, image: string): ImageFacts;
}

export function createViewer(clock: Clock, freshness: FreshnessSettings): Viewer {
  /** A time of this process as a date. What was measured is a duration, so a wall clock that was set meanwhile does no harm. */
  function date(monotonicMs: number): string {
    return new Date(clock.now() + (monotonicMs - clock.monotonic())).toISOString();
  }

  return {
    facts: ({ digest, details: { value }, confirmedAt }, image, byDigest, stale) => ({
      image,
      digest,
      ...(value.mediaType !== undefined && { mediaType: value.mediaType }),
      platforms: value.platforms,
      source: 'memory',
      credentialSource: value.credentialSource,
      endpoint: value.endpoint,
      freshUntil: date(freshUntil(confirmedAt, byDigest, freshness)),
      stale,
      ...(value.error && { error: value.error }),
    }),
    failure: ({ error, until, perAccount }, image) => ({
      image,
      platforms: [],
      source: 'memory',
      credentialSource: perAccount ? 'service-account' : 'anonymous',
      endpoint: '',
      freshUntil: date(until),
      stale: false,
      error: { ...error, retryAfterMs: Math.max(0, Math.ceil(until - clock.monotonic())) },
    }),
  };
}
