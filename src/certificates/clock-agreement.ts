/**
 * Time by two clocks: the API server's and this replica's. A certificate is expired or not yet valid only if
 * both agree: one clock that jumps must break no connection. Early replacement uses the API server's clock.
 */
import { backdateMs, type Validity } from './issue.ts';
import type { Certificate } from './pem.ts';

export interface Times {
  /** Life of a certificate, milliseconds. */
  readonly certificateMs: number;
  readonly caMs: number;
  /** How long programs may take to use new content. */
  readonly settleMs: number;
}

/** The kubelet updates a Secret in a pod within 2 min. Nodes that are unreachable for a while get it too. */
const mostSettleMs = 60 * 60_000;

const yearMs = 365 * 86_400_000;

/**
 * Settling twice has to fit into the last third of a life.
 * @param certificateMs life of a certificate
 * @param caMs life of the built-in CA; another than the default is for tests
 */
export function timesOf(certificateMs: number, caMs = yearMs): Times {
  return { certificateMs, caMs, settleMs: Math.min(mostSettleMs, caMs / 12, certificateMs / 12) };
}

export interface AgreedTime extends Times {
  /** The API server's time, milliseconds since 1970. */
  readonly now: number;
  readonly earliest: number;
  readonly latest: number;
}

export function agreedTimeOf(serverNow: number, ownNow: number, times: Times): AgreedTime {
  const [earliest, latest] = [Math.min(serverNow, ownNow), Math.max(serverNow, ownNow)];
  return { ...times, now: serverNow, earliest, latest };
}

export function hasExpired({ to }: Certificate, { earliest }: AgreedTime): boolean {
  return earliest >= to;
}

export function isNotYetValid({ from }: Certificate, { latest }: AgreedTime): boolean {
  return latest < from;
}

/** Whether an authority is too near its end to sign, or to be waited for. */
export function isSpent(certificate: Certificate, time: AgreedTime): boolean {
  return isNotYetValid(certificate, time) || time.earliest >= certificate.to - time.settleMs;
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

/** Whether a certificate should be replaced before it expires, by one with this life and authority. */
export function isDue(
  certificate: Certificate,
  time: AgreedTime,
  lifeMs: number,
  authority?: Certificate,
): boolean {
  // Ends later than a new one would: the configured life became shorter, or it was issued in the future.
  if (certificate.to > time.latest + lifeMs + backdateMs) return true;
  const gained = validity(time, lifeMs, authority).to - certificate.to;
  return time.now >= dueAt(certificate) && gained > lifeMs * gain;
}

/** The validity of a certificate that is issued now: valid by both clocks. */
export function validity({ now, earliest }: AgreedTime, lifeMs: number, authority?: Certificate): Validity {
  return { from: earliest - backdateMs, to: Math.min(now + lifeMs, authority?.to ?? Infinity) };
}
