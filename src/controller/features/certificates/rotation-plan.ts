/**
 * The rotation of authorities and certificates: the next step, computed from the Secrets and the time. Pure
 * and without other state, so any leader continues where an earlier one stopped.
 *
 * The life of an authority:
 *
 * 1. _Announcing_: a new authority is added to every `ca.crt` and `caBundle`. The old one signs.
 * 2. When a leader has seen it everywhere for `settleMs` (monotonic clock), the new authority signs. The key
 *    of the old one is deleted, and every certificate is issued again.
 * 3. When a leader has seen only new certificates for `settleMs`, the old authority leaves the bundles.
 * 4. After two thirds of its life, the rotation starts again.
 *
 * So programs with Secrets read less than `settleMs` ago always trust each other. A new leader waits again.
 *
 * If the old authority's key is lost or the authority is near its end, working certificates stay, and the new
 * authority signs the others at once.
 */
import { signerOf, trusted, type Authorities, type Remains } from '../../../certificates/authorities.ts';
import {
  dueAt,
  hasExpired,
  isDue,
  isNotYetValid,
  isSpent,
  type AgreedTime,
} from '../../../certificates/clock-agreement.ts';
import type { Pair, Subject } from '../../../certificates/issue.ts';
import { faultOf, type IssueReason, type Leaf } from './leaves.ts';
import { distinct, isIssuedBy, sameCertificates, type Certificate } from '../../../certificates/pem.ts';

export interface Found {
  readonly authorities: Authorities | Remains;
  readonly leaves: readonly Leaf[];
  /** Bundles that the API server trusts for the webhook; empty if there is no webhook. */
  readonly caBundles: readonly (readonly Certificate[] | undefined)[];
  readonly time: AgreedTime;
}

export type AuthorityChange =
  | {
      readonly kind: 'issue';
      readonly reason: IssueReason;
      /** The content beside the new one. */
      readonly keep: Omit<Authorities, 'newest'>;
    }
  | { readonly kind: 'sign' | 'retire'; readonly next: Authorities };

/** More do not help: each one is kept because a certificate of it may still be in use. */
const maxPrevious = 4;

/**
 * The next change of the authorities.
 * @param announcedMs for how long every bundle has had the newest authority, by this leader's monotonic clock
 * @param replacedMs for how long every certificate has been signed by it
 */
export function planAuthorities(
  found: Found,
  announcedMs: number,
  replacedMs: number,
): AuthorityChange | undefined {
  const { authorities, time } = found;
  const reason = reasonForNew(authorities, time);
  if (reason !== undefined || authorities.newest === undefined) {
    return { kind: 'issue', reason: reason ?? 'missing', keep: keptBeside(found) };
  }
  const { newest, previous, previousSigner, phase } = authorities;
  if (phase === 'announcing') {
    const areAllSpent = previous.every((each) => isSpent(each, time));
    if (announcedMs < time.settleMs && !areAllSpent) return undefined;
    return { kind: 'sign', next: { newest, previous, previousSigner: undefined, phase: 'signing' } };
  }
  const kept = replacedMs >= time.settleMs ? [] : previous.filter((each) => !hasExpired(each, time));
  // There must be no key of an old authority in this phase.
  if (kept.length === previous.length && previousSigner === undefined) return undefined;
  return { kind: 'retire', next: { newest, previous: kept, previousSigner: undefined, phase } };
}

function reasonForNew(authorities: Authorities | Remains, time: AgreedTime): IssueReason | undefined {
  if (authorities.newest === undefined) return authorities.empty ? 'missing' : 'unreadable';
  const { certificate } = authorities.newest;
  if (hasExpired(certificate, time)) return 'expired';
  if (isNotYetValid(certificate, time)) return 'not-yet-valid';
  // One change at a time.
  if (authorities.phase === 'announcing') return undefined;
  return isDue(certificate, time, time.caMs) ? 'due' : undefined;
}

function keptBeside({ authorities, leaves, time }: Found): Omit<Authorities, 'newest'> {
  const { newest } = authorities;
  const candidates = distinct([
    ...(newest ? [newest.certificate] : adopted(leaves, time)),
    ...authorities.previous,
  ]);
  const previous = candidates
    .filter((each) => !hasExpired(each, time))
    .sort((a, b) => b.to - a.to)
    .slice(0, maxPrevious);
  const previousSigner = [newest, authorities.previousSigner].find(
    (pair) =>
      pair && !isSpent(pair.certificate, time) && previous.some(({ id }) => id === pair.certificate.id),
  );
  return { previous, previousSigner, phase: previous.length === 0 ? 'signing' : 'announcing' };
}

/**
 * Authorities beside working leaves, which stay in use if the CA's Secret is lost. Trusting their bundles
 * adds no risk: a writer of these Secrets that can delete the CA's could write the CA's too.
 */
function adopted(leaves: readonly Leaf[], time: AgreedTime): Certificate[] {
  return leaves.flatMap(({ certificate, keyFits, bundle = [] }) =>
    certificate === undefined || !keyFits || hasExpired(certificate, time)
      ? []
      : bundle.filter((each) => each.x509.ca && isIssuedBy(certificate, each)),
  );
}

/** The next change of a leaf. `bundle`: only its `ca.crt` is wrong. */
export type LeafWork =
  { readonly reason: IssueReason; readonly signer: Pair; readonly subject: Subject } | 'bundle';

export function planLeaf(leaf: Leaf, authorities: Authorities, time: AgreedTime): LeafWork | undefined {
  const signer = signerOf(authorities, time);
  const { subject, texts, bundle } = leaf;
  const reason = faultOf(leaf, authorities, signer.certificate, time);
  const isAnnouncing = authorities.phase === 'announcing' && signer === authorities.newest;
  const mustWait = reason === 'due' && isAnnouncing && !isUrgent(leaf, time);
  if (reason !== undefined && !mustWait && subject !== undefined) return { reason, signer, subject };
  return texts === undefined || sameCertificates(bundle, trusted(authorities)) ? undefined : 'bundle';
}

/** Whether half of the time between its due time and its end is over. */
function isUrgent({ certificate }: Leaf, { now }: AgreedTime): boolean {
  return certificate === undefined || now >= (dueAt(certificate) + certificate.to) / 2;
}

/** Whether every bundle has the newest authority. */
export function isAnnounced({ authorities, leaves, caBundles }: Found): boolean {
  const newest = authorities.newest?.certificate.id;
  const bundles = [...existing(leaves).map(({ bundle }) => bundle), ...caBundles];
  return newest !== undefined && bundles.every((bundle) => bundle?.some(({ id }) => id === newest));
}

export function isReplaced({ authorities: { newest }, leaves }: Found): boolean {
  return existing(leaves).every(
    ({ certificate, keyFits }) =>
      newest && certificate && keyFits && isIssuedBy(certificate, newest.certificate),
  );
}

/** Omits a leaf that was not issued because its names are unknown: no program uses it. */
function existing(leaves: readonly Leaf[]): readonly Leaf[] {
  return leaves.filter(({ texts }) => texts !== undefined);
}
