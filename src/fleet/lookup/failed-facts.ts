/** Facts that say why there are none. */
import type { FactsError, ImageFacts } from '../../images/facts/facts.ts';
import type { Clock } from '../../async/clock.ts';

/** Messages quote what they are about, which may be long; facts with more than 1,024 characters here are refused. */
const maxMessageLength = 1000;

/**
 * Makes the answer to a question that found no answer.
 * @param image as asked for
 */
export function failedFacts(image: string, error: FactsError, clock: Clock): ImageFacts {
  return {
    image,
    platforms: [],
    source: 'registry',
    credentialSource: 'anonymous',
    endpoint: '',
    freshUntil: new Date(clock.now()).toISOString(),
    stale: false,
    error: { ...error, message: error.message.slice(0, maxMessageLength) },
  };
}
