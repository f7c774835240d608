/**
 * The authorities of the cluster, as stored in the Secret of the CA:
 *
 * | key | |
 * | --- | --- |
 * | `ca.crt`, `ca.key` | the newest authority |
 * | `previous.crt` | earlier ones that are still trusted; the newest first |
 * | `previous.key` | the key of the one that signs until the newest is trusted everywhere |
 * | `phase` | `announcing`: the newest is distributed, an earlier one signs; `signing`: the newest signs |
 *
 * Each change is one write of this one object, guarded by its version.
 */
import { reveal, secret } from '../telemetry/secret.ts';
import type { Pair } from './issue.ts';
import { distinct, readCertificates, readPrivateKey, writeCertificates, type Certificate } from './pem.ts';
import { isSpent, type AgreedTime } from './clock-agreement.ts';

/** Decoded values of a Secret's `data`. */
export type SecretTexts = Readonly<Record<string, string>>;
/** `null` removes a key. */
export type SecretChange = Readonly<Record<string, string | null>>;

export interface Authorities {
  readonly newest: Pair;
  /** Still trusted. */
  readonly previous: readonly Certificate[];
  /** One of `previous`, with its key. */
  readonly previousSigner: Pair | undefined;
  readonly phase: 'announcing' | 'signing';
}

/** The content of a Secret without a usable newest authority. */
export interface Remains extends Pick<Authorities, 'previous' | 'previousSigner'> {
  readonly newest: undefined;
  /** Whether there is nothing, as in a new cluster. */
  readonly empty: boolean;
}

/** Reads the Secret's texts. Unreadable ones count as missing. */
export function readAuthorities(texts: SecretTexts): Authorities | Remains {
  const newestCertificates = readCertificates(texts['ca.crt']) ?? [];
  const before = readCertificates(texts['previous.crt']) ?? [];
  const newest = pairOf(newestCertificates.slice(0, 1), texts['ca.key']);
  const previousSigner = pairOf(before, texts['previous.key']);
  if (newest === undefined) {
    const previous = distinct([...newestCertificates, ...before]).filter(({ x509 }) => x509.ca);
    return { newest, previous, previousSigner, empty: Object.keys(texts).length === 0 };
  }
  const previous = distinct(before).filter(({ id, x509 }) => x509.ca && id !== newest.certificate.id);
  // If in doubt, announcing: it only takes longer.
  const phase = previous.length === 0 || texts['phase'] === 'signing' ? 'signing' : 'announcing';
  return { newest, previous, previousSigner, phase };
}

function pairOf(certificates: readonly Certificate[], pem: string | undefined): Pair | undefined {
  const key = readPrivateKey(pem);
  const certificate = key && certificates.find(({ x509 }) => x509.checkPrivateKey(key));
  if (key === undefined || certificate?.x509.ca !== true) return undefined;
  return { certificate, key: secret(key.export({ type: 'pkcs8', format: 'pem' }).toString()) };
}

export function writeAuthorities(authorities: Authorities): SecretChange {
  const { newest, previous, previousSigner, phase } = authorities;
  return {
    'ca.crt': newest.certificate.pem,
    'ca.key': reveal(newest.key),
    'previous.crt': previous.length === 0 ? null : writeCertificates(previous),
    'previous.key': previousSigner === undefined ? null : reveal(previousSigner.key),
    phase,
  };
}

export function trusted({ newest, previous }: Authorities): readonly Certificate[] {
  return [newest.certificate, ...previous];
}

/** The authority that signs now: an earlier one, until the newest is trusted everywhere. */
export function signerOf({ newest, phase, previousSigner }: Authorities, time: AgreedTime): Pair {
  const isUsable = previousSigner !== undefined && !isSpent(previousSigner.certificate, time);
  return phase === 'announcing' && isUsable ? previousSigner : newest;
}
