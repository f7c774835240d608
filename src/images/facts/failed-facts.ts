/** Facts that hold an error instead of platforms. */
import type { FactsError, ImageFacts } from './facts.ts';

/** Messages quote what they are about, which may be long; `readFacts` refuses facts with more than 1,024 characters here. */
const maxMessageLength = 1000;

/**
 * Makes them.
 * @param image as requested
 * @param freshUntilMs wall clock
 * @param origin Default: `registry`, `anonymous`, no endpoint.
 */
export function failedFacts(
  image: string,
  error: FactsError,
  freshUntilMs: number,
  origin: Partial<Pick<ImageFacts, 'source' | 'credentialSource' | 'endpoint'>> = {},
): ImageFacts {
  return {
    image,
    platforms: [],
    source: 'registry',
    credentialSource: 'anonymous',
    endpoint: '',
    ...origin,
    freshUntil: new Date(freshUntilMs).toISOString(),
    stale: false,
    error: { ...error, message: error.message.slice(0, maxMessageLength) },
  };
}
