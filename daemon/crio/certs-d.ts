/**
 * The certificates of a registry host as CRI-O finds them: one directory named like the host, port included
 * (go.podman.io/image docker/docker_client.go `dockerCertDir`, pkg/tlsclientconfig `SetupCertificates`).
 */
import { posix } from 'node:path';
import { FileError, listDirectory, statPath } from '../../src/files/read.ts';
import type { TlsSettings } from '../../src/http/tls/trust.ts';
import { certificatesOf, readClientPair } from '../certificate-files.ts';
import { ConfigFileError, configFileError } from '../toml.ts';
import type { CrioConf } from './crio-conf.ts';

/** A host has a handful of files. */
const maxEntries = 100;

/** The first directory of a host counts, even if it is empty. */
export function certificateRoots({ home }: Pick<CrioConf, 'home'>): readonly string[] {
  return [posix.join(home, '.config/containers/certs.d'), '/etc/containers/certs.d', '/etc/docker/certs.d'];
}

/**
 * @param host of the endpoint, as written: `docker.io`, not `registry-1.docker.io`
 * @throws ConfigFileError if CRI-O could not use the endpoint
 */
export async function certificatesFor(
  host: string,
  conf: Pick<CrioConf, 'home'>,
  root: string,
): Promise<Pick<TlsSettings, 'ca' | 'client'>> {
  const dir = await directoryOf(host, certificateRoots(conf), root);
  if (dir === undefined) return { ca: [], client: [] };
  const names = await namesIn(dir, root);
  const ca: string[] = [];
  const client: TlsSettings['client'][number][] = [];
  for (const name of names) {
    const file = posix.join(dir, name);
    if (name.endsWith('.crt')) ca.push(...(await authoritiesOf(file, root)));
    if (name.endsWith('.cert')) {
      const key = file.replace(/cert$/, 'key');
      requireFile(names, key, file);
      client.push(await readClientPair([file, key], root));
    }
    if (name.endsWith('.key')) requireFile(names, file.replace(/key$/, 'cert'), file);
  }
  return { ca, client };
}

async function directoryOf(
  host: string,
  roots: readonly string[],
  root: string,
): Promise<string | undefined> {
  for (const each of roots) {
    const dir = posix.join(each, host);
    try {
      const stats = await statPath(dir, root);
      if (stats?.isDirectory() === false) throw new ConfigFileError(dir, 'is not a directory');
      if (stats !== undefined) return dir;
    } catch (error) {
      if (!(error instanceof FileError && error.code === 'denied')) throw configFileError(dir, error);
    }
  }
  return undefined;
}

async function namesIn(dir: string, root: string): Promise<readonly string[]> {
  try {
    return await listDirectory(dir, { maxEntries, root });
  } catch (error) {
    if (error instanceof FileError && (error.code === 'denied' || error.code === 'missing')) return [];
    throw configFileError(dir, error);
  }
}

/** A link to nothing is skipped. */
async function authoritiesOf(file: string, root: string): Promise<readonly string[]> {
  try {
    return await certificatesOf(file, root);
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof FileError && cause.code === 'missing') return [];
    throw error;
  }
}

function requireFile(names: readonly string[], wanted: string, of: string): void {
  const name = posix.basename(wanted);
  if (!names.includes(name)) throw new ConfigFileError(of, `it needs ${name} in the same directory`);
}
