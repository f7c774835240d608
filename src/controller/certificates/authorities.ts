/**
 * The authorities of the cluster, as stored in the Secret of the CA:
 *
 * | key | |
 * | --- | --- |
 * | `ca.crt`, `ca.key` | the newest authority |
 * | `previous.crt` | earlier ones that are still trusted; the newest first |
 * | `previous.key` | the key of the one that signs until the newest is trusted everywhere |
 * | `phase` | `announcing`: the newest is being distributed, and an earlier one signs; `signing`: the newest signs |
 *
 * Each change is one write of this one object, guarded by its version.
 */
import { reveal, secret } from '../../telemetry/secret.ts';
import type { Pair } from './issue.ts';
import { distinct, readCertificates, readPrivateKey, writeCertificates, type Certificate } from './pem.ts';

export type Phase = 'announcing' | 'signing';

export interface Authorities {
  readonly newest: Pair;
  /** Still trusted. */
  readonly previous: readonly Certificate[];
  /** One of `previous`, with its key. */
  readonly previousSigner: Pair | undefined;
  readonly phase: Phase;
}

/** The content of a Secret without a usable newest authority. */
export interface Remains {
  readonly newest: undefined;
  readonly previous: readonly Certificate[];
  readonly previousSigner: Pair | undefined;
  /** Whether there is nothing, as in a new cluster. */
  readonly empty: boolean;
}

/** Decoded values of a Secret's `data`. */
export type SecretTexts = Readonly<Record<string, string>>;

/** Reads the Secret's texts. Unreadable ones count as missing. */
export function readAuthorities(texts: SecretTexts): Authorities | Remains {
  const newestCertificates = readCertificates(texts['ca.crt']) ?? [];
  const before = readCertificates(texts['previous.crt']) ?? [];
  const newest = pairOf(newestCertificates.slice(0, 1), texts['ca.key']);
  const previousSigner = pairOf(before, texts['previous.key']);
  if (newest === undefined) {
    const previous = distinct([...newestCertificates, ...before]).filter(isAuthority);
    return { newest, previous, previousSigner, empty: Object.keys(texts).length === 0 };
  }
  const previous = distinct(before).filter((each) => isAuthority(each) && each.id !== newest.certificate.id);
  // Announcing if in doubt: that only takes longer.
  const phase = previous.length === 0 || texts['phase'] === 'signing' ? 'signing' : 'announcing';
  return { newest, previous, previousSigner, phase };
}

function pairOf(certificates: readonly Certificate[], pem: string | undefined): Pair | undefined {
  const key = readPrivateKey(pem);
  const certificate = key && certificates.find(({ x509 }) => x509.checkPrivateKey(key));
  if (key === undefined || certificate === undefined || !isAuthority(certificate)) return undefined;
  return { certificate, key: secret(key.export({ type: 'pkcs8', format: 'pem' }).toString()) };
}

function isAuthority({ x509 }: Certificate): boolean {
  return x509.ca;
}

/** The texts of the Secret; `null`: the key is removed. */
export function writeAuthorities(authorities: Authorities): Readonly<Record<string, string | null>> {
  const { newest, previous, previousSigner, phase } = authorities;
  return {
    'ca.crt': newest.certificate.pem,
    'ca.key': reveal(newest.key),
    'previous.crt': previous.length === 0 ? null : writeCertificates(previous),
    'previous.key': previousSigner === undefined ? null : reveal(previousSigner.key),
    phase,
  };
}

/** The authorities in every bundle. */
export function trusted({
  newest,
  previous,
}: Pick<Authorities, 'newest' | 'previous'>): readonly Certificate[] {
  return [newest.certificate, ...previous];
}
