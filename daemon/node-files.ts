/**
 * The node's files, read below the host root for one of its programs: what is wrong with a file names it. The
 * directories of all files that were looked for are kept, to watch them.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Stats } from 'node:fs';
import { dirname } from 'node:path';
import { ifError } from '../src/async/if-error.ts';
import {
  decodeUtf8,
  listDirectory,
  readBounded,
  statPath,
  undefinedIf,
  type FileErrorCode,
} from '../src/files/read.ts';
import { pemCertificatesIn, type TlsSettings } from '../src/http/tls/trust.ts';
import { secret } from '../src/telemetry/secret.ts';
import { ConfigFileError, inFile } from './toml.ts';

/** Errors that are no problem: the result is `undefined`, or no name. */
type Skipped = readonly FileErrorCode[];

export class NodeFiles {
  readonly root: string;
  readonly dirs = new Set<string>();

  /** @param root directory that stands for `/` */
  constructor(root: string) {
    this.root = root;
  }

  /** @throws ConfigFileError */
  async read(path: string, maxBytes: number, ...skipped: Skipped): Promise<Buffer | undefined> {
    this.dirs.add(dirname(path));
    const read = () => readBounded(path, { maxBytes, root: this.root }).catch(undefinedIf(...skipped));
    return await inFile(path, read);
  }

  /** The content must be UTF-8. @throws ConfigFileError */
  async text(path: string, maxBytes: number, ...skipped: Skipped): Promise<string | undefined> {
    const bytes = await this.read(path, maxBytes, ...skipped);
    return bytes && (await inFile(path, () => decodeUtf8(bytes, path)));
  }

  /** Names in a directory, sorted; none if it is missing. @throws ConfigFileError */
  async names(dir: string, maxEntries: number, ...skipped: Skipped): Promise<readonly string[]> {
    this.dirs.add(dir);
    const listed = () => listDirectory(dir, { maxEntries, root: this.root });
    return (await inFile(dir, () => listed().catch(undefinedIf('missing', ...skipped)))) ?? [];
  }

  /** Links followed; `undefined` if it is missing. @throws ConfigFileError */
  async stat(path: string, ...skipped: Skipped): Promise<Stats | undefined> {
    this.dirs.add(dirname(path));
    return await inFile(path, () => statPath(path, this.root).catch(undefinedIf(...skipped)));
  }
}

/** What is read, or why what needs it fails. */
export async function orBroken<T>(where: string, read: () => T | Promise<T>): Promise<T | ConfigFileError> {
  return await inFile(where, read).catch(ifError(ConfigFileError, (error) => error));
}

/** The first path that exists and is no directory. One that may not be examined exists. */
export async function firstExisting(paths: readonly string[], files: NodeFiles): Promise<string | undefined> {
  for (const path of paths) {
    const found = await orBroken(path, () => files.stat(path));
    if (found instanceof ConfigFileError || found?.isDirectory() === false) return path;
  }
  return undefined;
}

/** The largest bundles of CAs in use are about 500 KiB. */
const maxCertificateBytes = 2 * 1024 * 1024;

/** The valid certificates of a PEM file; other content is skipped, as in Go. @throws ConfigFileError */
export async function certificatesOf(file: string, files: NodeFiles): Promise<readonly string[]> {
  const found = pemCertificatesIn(await readText(file, files));
  return found.filter((pem) => certificateOf(pem) !== undefined);
}

/** A client certificate and its key, which may be in the same file (`''`). @throws ConfigFileError */
export async function clientPairIn(
  [certificateFile, keyFile]: readonly [string, string],
  files: NodeFiles,
): Promise<TlsSettings['client'][number]> {
  const certificate = await readText(certificateFile, files);
  const key = keyFile === '' ? certificate : await readText(keyFile, files);
  const leaf = certificateOf(pemCertificatesIn(certificate)[0]);
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
