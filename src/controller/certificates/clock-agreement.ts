/**
 * The time by two clocks: the API server's, and this replica's own. A certificate counts as expired, or as not valid yet, only if both clocks
 * agree: if one clock jumps, connections between hosts with the right time must not break. Early replacement goes by the API server's clock.
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

/** Whether it ends later than one that is issued now: the configured life became shorter, or it was issued in the future. */
function isTooLong({ to }: Certificate, { latest }: AgreedTime, lifeMs: number): boolean {
  return to > latest + lifeMs + backdateMs;
}

/** Two thirds of a life: cert-manager's rule too. */
const dueAfter = 2 / 3;
/** A new certificate has to last longer than the old one by this part of a life. */
const gain = 1 / 6;

/** When a certificate, leaf or authority, should be replaced. */
export function dueAt({ from, to }: Pick<Certificate, 'from' | 'to'>): number {
  const issued = from + backdateMs;
  return issued + (to - issued) * dueAfter;
}

/**
 * Whether a certificate should be replaced before it expires.
 * @param issuable validity of a new one
 * @param lifeMs of a new one
 */
export function isDue(
  certificate: Certificate,
  time: AgreedTime,
  issuable: Validity,
  lifeMs: number,
): boolean {
  if (isTooLong(certificate, time, lifeMs)) return true;
  return time.now >= dueAt(certificate) && issuable.to - certificate.to > lifeMs * gain;
}

/** The validity of a certificate that is issued now: valid by both clocks. */
export function validity({ now, earliest }: AgreedTime, lifeMs: number, authority?: Certificate): Validity {
  return { from: earliest - backdateMs, to: Math.min(now + lifeMs, authority?.to ?? Infinity) };
}
