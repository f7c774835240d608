/**
 * What time it is, with a second opinion: the API server's clock, and this replica's own. What ends something at once (it has
 * expired, it is not valid yet) is believed when both say so, because one clock that jumps must not cut anybody off whose clock
 * is right. What comes early enough to be done in peace goes by the API server's alone.
 */
import { backdateMs, type Validity } from './issue.ts';
import type { Certificate } from './pem.ts';

export interface AgreedTime {
  /** The API server's time, milliseconds since 1970. */
  readonly now: number;
  readonly earliest: number;
  readonly latest: number;
}

export function agreedTimeOf(serverNow: number, ownNow: number): AgreedTime {
  return { now: serverNow, earliest: Math.min(serverNow, ownNow), latest: Math.max(serverNow, ownNow) };
}

export function hasExpired({ to }: Certificate, { earliest }: AgreedTime): boolean {
  return earliest >= to;
}

export function isNotYetValid({ from }: Certificate, { latest }: AgreedTime): boolean {
  return latest < from;
}

/** Whether it ends later than one that is issued now would: its life was set shorter, or it comes out of the future. */
function isTooLong({ to }: Certificate, { latest }: AgreedTime, lifeMs: number): boolean {
  return to > latest + lifeMs + backdateMs;
}

/** Two thirds of a life: cert-manager's rule too. */
const share = 2 / 3;
/** A new certificate has to last longer than the old one by this share of a life, or it is not worth it. */
const gain = 1 / 6;

/** When a certificate, leaf or authority, is to be replaced. */
export function dueAt({ from, to }: Pick<Certificate, 'from' | 'to'>): number {
  const issued = from + backdateMs;
  return issued + (to - issued) * share;
}

/**
 * Whether a certificate is to be replaced in peace.
 * @param issuable what a new one would have
 * @param lifeMs of a new one
 */
export function isDue(
  certificate: Certificate,
  moment: AgreedTime,
  issuable: Validity,
  lifeMs: number,
): boolean {
  if (isTooLong(certificate, moment, lifeMs)) return true;
  return moment.now >= dueAt(certificate) && issuable.to - certificate.to > lifeMs * gain;
}

/** The validity of what is issued now: valid by both clocks. */
export function validity({ now, earliest }: AgreedTime, lifeMs: number, authority?: Certificate): Validity {
  return { from: earliest - backdateMs, to: Math.min(now + lifeMs, authority?.to ?? Infinity) };
}
