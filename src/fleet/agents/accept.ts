/** Checks the facts of an agent: its node may be compromised, so the receiver proves or limits them itself. */
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
 * Limits an agent's facts to what the receiver can trust: facts of a digest are derived from its documents,
 * and no facts stay fresh for longer than the receiver's settings allow.
 * @param now milliseconds since 1970
 * @throws RejectedFacts
 */
export async function acceptFacts(
  facts: ImageFacts,
  reference: Reference,
  settings: FreshnessSettings,
  now: number,
): Promise<ImageFacts> {
  const latest = freshUntil(now, reference.digest !== undefined, settings);
  const isWithin = Date.parse(facts.freshUntil) <= latest;
  const bounded = isWithin ? facts : { ...facts, freshUntil: new Date(latest).toISOString() };
  const { documents: _, ...claimed } = bounded;
  if (reference.digest === undefined || !needsProof(reference, claimed)) return claimed;
  const refuse = ({ message }: NoProof): never => {
    throw new RejectedFacts(`the facts are not proven: ${message}`);
  };
  return await proveFacts(reference.digest, bounded).catch(ifError(NoProof, refuse));
}
