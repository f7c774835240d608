/** Files with certificates and keys that a runtime's configuration names. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { certificatesIn, type TlsSettings } from '../src/http/tls/trust.ts';
import { secret } from '../src/telemetry/secret.ts';
import type { NodeFiles } from './node-files.ts';
import { ConfigFileError } from './toml.ts';

/** The largest bundles of CAs in use are about 500 KiB. */
const maxCertificateBytes = 2 * 1024 * 1024;

/** The valid certificates of a PEM file; other content is skipped, as in Go. @throws ConfigFileError */
export async function certificatesOf(file: string, files: NodeFiles): Promise<readonly string[]> {
  const found = certificatesIn(await readText(file, files));
  return found.filter((pem) => certificateOf(pem) !== undefined);
}

/** A client certificate and its key, which may be in the same file (`''`). @throws ConfigFileError */
export async function readClientPair(
  [certificateFile, keyFile]: readonly [string, string],
  files: NodeFiles,
): Promise<TlsSettings['client'][number]> {
  const certificate = await readText(certificateFile, files);
  const key = keyFile === '' ? certificate : await readText(keyFile, files);
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

async function readText(file: string, files: NodeFiles): Promise<string> {
  return (await files.read(file, maxCertificateBytes))?.toString('latin1') ?? '';
}
