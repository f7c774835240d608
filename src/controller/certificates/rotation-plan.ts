/**
 * The rotation of authorities and certificates: what to do next, computed from the content of the Secrets and the time. Pure; there is no
 * other state, so any leader continues where an earlier one stopped.
 *
 * The life of an authority:
 *
 * 1. _Announcing_: a new authority is made and added to every `ca.crt` and `caBundle`. The old one signs.
 * 2. After a leader has seen it everywhere for `settleMs`, by its monotonic clock, the new authority signs. The key of the old one is
 *    deleted, and every certificate is issued again.
 * 3. After a leader has seen only new certificates for `settleMs`, the old authority is removed from the bundles.
 * 4. After two thirds of its life, it starts again.
 *
 * So at any time, programs that use the content of the Secrets from less than `settleMs` ago trust each other. A new leader waits again,
 * which is safe.
 *
 * If the old authority's key is lost or the authority is near its end, working certificates stay, and the new authority signs the others at
 * once.
 */
import { trusted, type Authorities, type Remains } from './authorities.ts';
import { dueAt, hasExpired, isDue, isNotYetValid, validity, type AgreedTime } from './clock-agreement.ts';
import { distinct, isIssuedBy, sameCertificates, type Certificate } from './pem.ts';
import { faultOf, type IssueReason, type Leaf, type LeafName, type LeafSpec } from './leaves.ts';

export interface Times {
  /** Life of a certificate, milliseconds. */
  readonly certificateMs: number;
  /** Life of an authority. */
  readonly caMs: number;
  /** How long programs may take to use what was written. */
  readonly settleMs: number;
}

/** The kubelet brings a changed Secret to a pod within two minutes. Nodes that are unreachable for a while should get it too. */
const mostSettleMs = 60 * 60_000;

/** Times from the settings. Settling twice has to fit into the last third of a life. */
export function timesOf(settings: { readonly certificateTime: number; readonly caTime: number }): Times {
  const { certificateTime, caTime } = settings;
  return {
    certificateMs: certificateTime,
    caMs: caTime,
    settleMs: Math.min(mostSettleMs, Math.min(caTime, certificateTime) / 12),
  };
}

/** What a leader has read. */
export interface Found {
  readonly authorities: Authorities | Remains;
  readonly leaves: ReadonlyMap<LeafName, Leaf>;
  /** Bundles that the API server trusts for the webhook; empty if there is no webhook. */
  readonly caBundles: readonly (readonly Certificate[] | undefined)[];
}

/** For how long something has been true without a break, milliseconds by this leader's monotonic clock. */
export interface Seen {
  /** Every bundle has the newest authority. */
  readonly announcedMs: number;
  /** Every certificate is signed by the newest authority. */
  readonly replacedMs: number;
}

/** A change of the authorities. */
export type AuthorityChange =
  | {
      readonly kind: 'issue';
      readonly reason: IssueReason;
      /** What stays beside the new one. */
      readonly keep: Pick<Authorities, 'previous' | 'previousSigner' | 'phase'>;
    }
  | { readonly kind: 'sign' | 'retire'; readonly next: Authorities };

/** More do not help: each one is kept because a certificate of it may still be in use. */
const maxPrevious = 4;

/** The next change of the authorities. */
export function planAuthorities(
  found: Found,
  time: AgreedTime,
  times: Times,
  seen: Seen,
): AuthorityChange | undefined {
  const { authorities } = found;
  const reason = reasonForNew(authorities, time, times);
  if (reason !== undefined || authorities.newest === undefined) {
    return { kind: 'issue', reason: reason ?? 'missing', keep: keptBeside(found, time, times) };
  }
  const { newest, previous, previousSigner, phase } = authorities;
  if (phase === 'announcing') {
    const areAllSpent = previous.every((each) => isSpent(each, time, times));
    if (seen.announcedMs < times.settleMs && !areAllSpent) return undefined;
    return { kind: 'sign', next: { newest, previous, previousSigner: undefined, phase: 'signing' } };
  }
  const isReplaced = seen.replacedMs >= times.settleMs;
  const kept = isReplaced ? [] : previous.filter((each) => !hasExpired(each, time));
  // There must be no key of an old authority in this phase.
  if (kept.length === previous.length && previousSigner === undefined) return undefined;
  return { kind: 'retire', next: { newest, previous: kept, previousSigner: undefined, phase } };
}

function reasonForNew(
  authorities: Authorities | Remains,
  time: AgreedTime,
  times: Times,
): IssueReason | undefined {
  if (authorities.newest === undefined) return authorities.empty ? 'missing' : 'unreadable';
  const { certificate } = authorities.newest;
  if (hasExpired(certificate, time)) return 'expired';
  if (isNotYetValid(certificate, time)) return 'not-yet-valid';
  // One change at a time.
  if (authorities.phase === 'announcing') return undefined;
  return isDue(certificate, time, validity(time, times.caMs), times.caMs) ? 'due' : undefined;
}

/** Whether an authority is too near its end to sign, or to be waited for. */
function isSpent(certificate: Certificate, time: AgreedTime, times: Times): boolean {
  return isNotYetValid(certificate, time) || time.earliest >= certificate.to - times.settleMs;
}

function keptBeside(
  { authorities, leaves }: Found,
  time: AgreedTime,
  times: Times,
): Pick<Authorities, 'previous' | 'previousSigner' | 'phase'> {
  const { newest } = authorities;
  const candidates = distinct([
    ...(newest ? [newest.certificate] : adopted([...leaves.values()], time)),
    ...authorities.previous,
  ]);
  const previous = candidates
    .filter((each) => !hasExpired(each, time))
    .sort((a, b) => b.to - a.to)
    .slice(0, maxPrevious);
  const signers = [newest, authorities.previousSigner];
  const previousSigner = signers.find(
    (pair) =>
      pair &&
      !isSpent(pair.certificate, time, times) &&
      previous.some(({ id }) => id === pair.certificate.id),
  );
  return { previous, previousSigner, phase: previous.length === 0 ? 'signing' : 'announcing' };
}

/**
 * The authorities beside working leaves. If the Secret of the CA is lost, its leaves are still in use. Trusting their bundles adds no risk: who
 * can write these Secrets and delete that one could write that one too.
 */
function adopted(leaves: readonly Leaf[], time: AgreedTime): Certificate[] {
  return leaves.flatMap(({ certificate, keyFits, bundle = [] }) =>
    certificate === undefined || !keyFits || hasExpired(certificate, time)
      ? []
      : bundle.filter((each) => each.x509.ca && isIssuedBy(certificate, each)),
  );
}

/** The next change of a leaf. */
export type LeafWork =
  | { readonly kind: 'issue'; readonly reason: IssueReason; readonly by: 'newest' | 'previous' }
  /** Only its `ca.crt` is wrong. */
  | { readonly kind: 'bundle' };

/** The next change of a leaf, under the current authorities. */
export function planLeaf(
  leaf: Leaf,
  { subject }: Pick<LeafSpec, 'subject'>,
  authorities: Authorities,
  time: AgreedTime,
  times: Times,
): LeafWork | undefined {
  const { newest, phase, previousSigner } = authorities;
  const byPrevious =
    phase === 'announcing' &&
    previousSigner !== undefined &&
    !isSpent(previousSigner.certificate, time, times);
  const signer = byPrevious ? previousSigner : newest;
  const reason = faultOf(leaf, subject, authorities, signer.certificate, time, times.certificateMs);
  const mustWait =
    reason === 'due' &&
    phase === 'announcing' &&
    !byPrevious &&
    leaf.certificate &&
    !isUrgent(leaf.certificate, time);
  if (reason !== undefined && mustWait !== true && subject !== undefined) {
    return { kind: 'issue', reason, by: byPrevious ? 'previous' : 'newest' };
  }
  if (leaf.texts === undefined || sameCertificates(leaf.bundle, trusted(authorities))) return undefined;
  return { kind: 'bundle' };
}

/** Whether half of the time between its due time and its end is over. */
function isUrgent(certificate: Certificate, time: AgreedTime): boolean {
  return time.now >= (dueAt(certificate) + certificate.to) / 2;
}

/** Whether every bundle has the newest authority. */
export function isAnnounced({ authorities, leaves, caBundles }: Found): boolean {
  const { newest } = authorities;
  if (newest === undefined) return false;
  return [...existing(leaves).map(({ bundle }) => bundle), ...caBundles].every((bundle) =>
    bundle?.some(({ id }) => id === newest.certificate.id),
  );
}

/** Whether the newest authority signed every certificate. */
export function isReplaced({ authorities, leaves }: Found): boolean {
  const { newest } = authorities;
  if (newest === undefined) return false;
  return existing(leaves).every(
    ({ certificate, keyFits }) =>
      certificate !== undefined && keyFits && isIssuedBy(certificate, newest.certificate),
  );
}

/** Without a leaf that was not issued because its names are unknown: no program uses it. */
function existing(leaves: Found['leaves']): readonly Leaf[] {
  return [...leaves.values()].filter(({ texts }) => texts !== undefined);
}

/** When the next certificate becomes due, milliseconds since 1970; without certificates that are due already. */
export function nextDue({ authorities, leaves }: Found, { now }: AgreedTime): number {
  const certificates = [
    authorities.newest?.certificate,
    ...[...leaves.values()].map(({ certificate }) => certificate),
  ];
  const times = certificates.flatMap((each) => (each === undefined ? [] : [dueAt(each), each.to]));
  return Math.min(...times.filter((at) => at > now));
}
