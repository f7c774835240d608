/** What of an agent's facts the receiver decides itself, because the agent's node may be compromised. */
import type { ImageFacts } from '../../images/facts/facts.ts';
import { freshUntil, type FreshnessSettings } from '../../images/memory/freshness.ts';
import type { Reference } from '../../images/references/reference.ts';

/**
 * Limits how long facts are fresh: never longer than if a registry had confirmed them now, by the receiver's own settings and
 * clock. An agent can only shorten that.
 * @param now milliseconds since 1970
 */
export function withinFreshness(
  facts: ImageFacts,
  { digest }: Pick<Reference, 'digest'>,
  settings: FreshnessSettings,
  now: number,
): ImageFacts {
  const latest = freshUntil(now, digest !== undefined, settings);
  return Date.parse(facts.freshUntil) <= latest
    ? facts
    : { ...facts, freshUntil: new Date(latest).toISOString() };
}
