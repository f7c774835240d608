/** What of an agent's facts the receiver decides itself, because the agent's node may be compromised. */
import { ifError } from '../../async/if-error.ts';
import type { ImageFacts } from '../../images/facts/facts.ts';
import { freshUntil, type FreshnessSettings } from '../../images/memory/freshness.ts';
import { needsProof, NoProof, proveFacts } from '../../images/facts/proof.ts';
import type { Reference } from '../../images/references/reference.ts';

/** Why facts are rejected: documents that should prove them are missing or prove nothing. */
export class RejectedFacts extends Error {
  override readonly name = 'RejectedFacts';
  readonly reason = 'no-proof';
}

/**
 * The facts that count of an agent's answer: those of a digest are derived from its documents, and none is
 * fresh for longer than the receiver's settings say.
 * @param now milliseconds since 1970
 * @throws RejectedFacts
 */
export async function acceptFacts(
  facts: ImageFacts,
  reference: Reference,
  settings: FreshnessSettings,
  now: number,
): Promise<ImageFacts> {
  const bounded = withinFreshness(facts, reference, settings, now);
  const { documents: _, ...claimed } = bounded;
  if (reference.digest === undefined || !needsProof(reference, claimed)) return claimed;
  const refuse = ({ message }: NoProof): never => {
    throw new RejectedFacts(`the facts are not proven: ${message}`);
  };
  return await proveFacts(reference.digest, bounded).catch(ifError(NoProof, refuse));
}

/**
 * Limits how long facts are fresh: never longer than if a registry had confirmed them now, by the receiver's
 * own settings and clock. An agent can only shorten that.
 * @param now milliseconds since 1970
 */
function withinFreshness(
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
