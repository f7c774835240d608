/**
 * The plan: from what the Secrets hold and the time it follows what to do next. Pure, and there is no other state, so it does
 * not matter where an earlier leader stopped.
 *
 * An authority's life:
 *
 * 1. _Announcing_: a new one is made and joins every `ca.crt` and `caBundle`, while the one before goes on signing.
 * 2. When a leader has seen it everywhere for `settleMs` by its own clock, which no change of the time can hurry, the new one
 *    signs; the key of the old one is forgotten and every certificate is issued anew.
 * 3. When a leader has seen nothing but new certificates for `settleMs`, the old authority leaves the bundles.
 * 4. After two thirds of its life it starts again.
 *
 * So at each moment whoever serves or trusts what was in a Secret less than `settleMs` ago gets along with everybody else. A
 * leader that has not watched for long enough, because it is new, waits again: waiting is safe.
 *
 * Where the old authority's key is lost or its end is near, certificates that work stay, and what does not is signed by the
 * new one at once.
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
  /** How long everybody may take to use what was written. */
  readonly settleMs: number;
}

/** The kubelet brings a changed Secret to a pod within two minutes; nodes that are out of reach for a while should get it too. */
const mostSettleMs = 60 * 60_000;

/** Times from the settings. A short life leaves less time: settling twice has to fit into the last third of it. */
export function timesOf(settings: { readonly certificateTime: number; readonly caTime: number }): Times {
  const { certificateTime, caTime } = settings;
  return {
    certificateMs: certificateTime,
    caMs: caTime,
    settleMs: Math.min(mostSettleMs, Math.min(caTime, certificateTime) / 12),
  };
}

/** What was found. */
export interface Found {
  readonly authorities: Authorities | Remains;
  readonly leaves: ReadonlyMap<LeafName, Leaf>;
  /** Bundles that the API server trusts for the webhook; none where no webhook is in force. */
  readonly caBundles: readonly (readonly Certificate[] | undefined)[];
}

/** For how long this leader has seen without a break, milliseconds by its monotonic clock: */
export interface Watched {
  /** that every bundle holds the newest authority; */
  readonly announcedMs: number;
  /** that every certificate is one of the newest authority. */
  readonly replacedMs: number;
}

/** How the authorities change, if they do. */
export type AuthorityChange =
  | {
      readonly kind: 'issue';
      readonly reason: IssueReason;
      /** What stays besides the new one. */
      readonly keep: Pick<Authorities, 'previous' | 'previousSigner' | 'phase'>;
    }
  | { readonly kind: 'sign' | 'retire'; readonly next: Authorities };

/** More than these never help: each is the issuer of something that may still be in use. */
const maxPrevious = 4;

/** What to do about the authorities. */
export function planAuthorities(
  found: Found,
  moment: AgreedTime,
  times: Times,
  watched: Watched,
): AuthorityChange | undefined {
  const { authorities } = found;
  const reason = reasonForNew(authorities, moment, times);
  if (reason !== undefined || authorities.newest === undefined) {
    return { kind: 'issue', reason: reason ?? 'missing', keep: keptBeside(found, moment, times) };
  }
  const { newest, previous, previousSigner, phase } = authorities;
  if (phase === 'announcing') {
    const nobodyWaits = previous.every((each) => isSpent(each, moment, times));
    if (watched.announcedMs < times.settleMs && !nobodyWaits) return undefined;
    return { kind: 'sign', next: { newest, previous, previousSigner: undefined, phase: 'signing' } };
  }
  const isReplaced = watched.replacedMs >= times.settleMs;
  const kept = isReplaced ? [] : previous.filter((each) => !hasExpired(each, moment));
  // A key has no business in this phase, however it got there.
  if (kept.length === previous.length && previousSigner === undefined) return undefined;
  return { kind: 'retire', next: { newest, previous: kept, previousSigner: undefined, phase } };
}

function reasonForNew(
  authorities: Authorities | Remains,
  moment: AgreedTime,
  times: Times,
): IssueReason | undefined {
  if (authorities.newest === undefined) return authorities.empty ? 'missing' : 'unreadable';
  const { certificate } = authorities.newest;
  if (hasExpired(certificate, moment)) return 'expired';
  if (isNotYetValid(certificate, moment)) return 'not-yet-valid';
  // One change at a time: a new authority that is not yet known everywhere first gets there.
  if (authorities.phase === 'announcing') return undefined;
  return isDue(certificate, moment, validity(moment, times.caMs), times.caMs) ? 'due' : undefined;
}

/** An authority too near its end to sign with, or to wait for. */
function isSpent(certificate: Certificate, moment: AgreedTime, times: Times): boolean {
  return isNotYetValid(certificate, moment) || moment.earliest >= certificate.to - times.settleMs;
}

function keptBeside(
  { authorities, leaves }: Found,
  moment: AgreedTime,
  times: Times,
): Pick<Authorities, 'previous' | 'previousSigner' | 'phase'> {
  const { newest } = authorities;
  const candidates = distinct([
    ...(newest ? [newest.certificate] : adopted([...leaves.values()], moment)),
    ...authorities.previous,
  ]);
  const previous = candidates
    .filter((each) => !hasExpired(each, moment))
    .sort((a, b) => b.to - a.to)
    .slice(0, maxPrevious);
  const signers = [newest, authorities.previousSigner];
  const previousSigner = signers.find(
    (pair) =>
      pair &&
      !isSpent(pair.certificate, moment, times) &&
      previous.some(({ id }) => id === pair.certificate.id),
  );
  return { previous, previousSigner, phase: previous.length === 0 ? 'signing' : 'announcing' };
}

/**
 * Where the Secret of the CA is lost, what it signed is still in use: its certificate stands in the Secrets beside what it
 * signed. Whoever can write those Secrets and delete that one could as well write that one.
 */
function adopted(leaves: readonly Leaf[], moment: AgreedTime): Certificate[] {
  return leaves.flatMap(({ certificate, keyFits, bundle = [] }) =>
    certificate === undefined || !keyFits || hasExpired(certificate, moment)
      ? []
      : bundle.filter((each) => each.x509.ca && isIssuedBy(certificate, each)),
  );
}

/** What to do about one leaf. */
export type LeafWork =
  | { readonly kind: 'issue'; readonly reason: IssueReason; readonly by: 'newest' | 'previous' }
  /** Only its `ca.crt` is not what it should be. */
  | { readonly kind: 'bundle' };

/** What is to be done about a leaf under authorities that are in the Secret already. */
export function planLeaf(
  leaf: Leaf,
  { subject }: Pick<LeafSpec, 'subject'>,
  authorities: Authorities,
  moment: AgreedTime,
  times: Times,
): LeafWork | undefined {
  const { newest, phase, previousSigner } = authorities;
  const byPrevious =
    phase === 'announcing' &&
    previousSigner !== undefined &&
    !isSpent(previousSigner.certificate, moment, times);
  const signer = byPrevious ? previousSigner : newest;
  const reason = faultOf(leaf, subject, authorities, signer.certificate, moment, times.certificateMs);
  const mustWait =
    reason === 'due' &&
    phase === 'announcing' &&
    !byPrevious &&
    leaf.certificate &&
    !isUrgent(leaf.certificate, moment);
  if (reason !== undefined && mustWait !== true && subject !== undefined) {
    return { kind: 'issue', reason, by: byPrevious ? 'previous' : 'newest' };
  }
  if (leaf.texts === undefined || sameCertificates(leaf.bundle, trusted(authorities))) return undefined;
  return { kind: 'bundle' };
}

/** Half of the time between the moment when it is due and its end. */
function isUrgent(certificate: Certificate, moment: AgreedTime): boolean {
  return moment.now >= (dueAt(certificate) + certificate.to) / 2;
}

/** Whether every bundle holds the newest authority. */
export function isAnnounced({ authorities, leaves, caBundles }: Found): boolean {
  const { newest } = authorities;
  if (newest === undefined) return false;
  return [...existing(leaves).map(({ bundle }) => bundle), ...caBundles].every((bundle) =>
    bundle?.some(({ id }) => id === newest.certificate.id),
  );
}

/** Whether every certificate is one of the newest authority. */
export function isReplaced({ authorities, leaves }: Found): boolean {
  const { newest } = authorities;
  if (newest === undefined) return false;
  return existing(leaves).every(
    ({ certificate, keyFits }) =>
      certificate !== undefined && keyFits && isIssuedBy(certificate, newest.certificate),
  );
}

/** A leaf that cannot be issued, because its names are not known, has nobody who uses it. */
function existing(leaves: Found['leaves']): readonly Leaf[] {
  return [...leaves.values()].filter(({ texts }) => texts !== undefined);
}

/** When the next certificate is due, milliseconds since 1970; what has been due without effect is not waited for. */
export function nextDue({ authorities, leaves }: Found, { now }: AgreedTime): number {
  const certificates = [
    authorities.newest?.certificate,
    ...[...leaves.values()].map(({ certificate }) => certificate),
  ];
  const times = certificates.flatMap((each) => (each === undefined ? [] : [dueAt(each), each.to]));
  return Math.min(...times.filter((at) => at > now));
}
