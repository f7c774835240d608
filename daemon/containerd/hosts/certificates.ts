/**
 * The certificates of a host, from the files in its configuration. A file that cannot be read or has no certificate fails the whole
 * pull, not only the requests to that host (containerd `tlsConfigFromHost`).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readBounded } from '../../../src/files/read.ts';
import { certificatesIn, type TlsSettings } from '../../../src/http/tls/trust.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import type { HostConfig } from './hosts-file.ts';
import { ConfigFileError, configFileError } from '../config/toml.ts';

/** The largest bundles of CAs in use are about 500 KiB. */
const maxCertificateBytes = 2 * 1024 * 1024;

/** @throws ConfigFileError */
export async function readTls(
  { ca = [], client = [], skipVerify }: Pick<HostConfig, 'ca' | 'client' | 'skipVerify'>,
  hostRoot?: string,
): Promise<TlsSettings> {
  const [authorities, pairs] = await Promise.all([
    Promise.all(ca.map((file) => readAuthorities(file, hostRoot))),
    Promise.all(client.map((pair) => readPair(pair, hostRoot))),
  ]);
  return { ca: authorities.flat(), client: pairs, skipVerify: skipVerify === true };
}

async function readAuthorities(file: string, root: string | undefined): Promise<string[]> {
  const found = certificatesIn(await readText(file, root)).filter((pem) => certificateOf(pem) !== undefined);
  if (found.length === 0) throw new ConfigFileError(file, 'it contains no certificate in PEM');
  return found;
}

async function readPair(
  [certificateFile, keyFile]: readonly [string, string],
  root: string | undefined,
): Promise<TlsSettings['client'][number]> {
  const certificate = await readText(certificateFile, root);
  const key = keyFile === '' ? certificate : await readText(keyFile, root);
  const leaf = certificateOf(certificatesIn(certificate)[0]);
  if (leaf === undefined) throw new ConfigFileError(certificateFile, 'it contains no certificate in PEM');
  const where = keyFile === '' ? certificateFile : keyFile;
  if (!isKeyOf(leaf, key))
    throw new ConfigFileError(where, `it does not contain the key of ${certificateFile}`);
  return { certificate, key: secret(key) };
}

function certificateOf(pem: string | undefined): X509Certificate | undefined {
  try {
    return pem === undefined ? undefined : new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function isKeyOf(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

async function readText(file: string, root: string | undefined): Promise<string> {
  try {
    return (await readBounded(file, { maxBytes: maxCertificateBytes, root })).toString('latin1');
  } catch (error) {
    throw configFileError(file, error);
  }
}
