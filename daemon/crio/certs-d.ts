/**
 * The certificates of a registry host as CRI-O finds them: one directory named like the host, port included
 * (go.podman.io/image docker/docker_client.go `dockerCertDir`, pkg/tlsclientconfig `SetupCertificates`).
 */
import { posix } from 'node:path';
import { listDirectory, statPath, undefinedIf } from '../../src/files/read.ts';
import type { TlsSettings } from '../../src/http/tls/trust.ts';
import { certificatesOf, readClientPair } from '../certificate-files.ts';
import { ConfigFileError, inFile } from '../toml.ts';
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
  const ca: string[] = [];
  const client: TlsSettings['client'][number][] = [];
  const dir = await directoryOf(host, certificateRoots(conf), root);
  if (dir === undefined) return { ca, client };
  const listed = () => listDirectory(dir, { maxEntries, root }).catch(undefinedIf('denied', 'missing'));
  const names = (await inFile(dir, listed)) ?? [];
  for (const name of names) {
    const file = posix.join(dir, name);
    // A link to nothing is skipped.
    if (name.endsWith('.crt') && (await inFile(file, () => statPath(file, root))))
      ca.push(...(await certificatesOf(file, root)));
    const other = name.replace(/\.(?:cert|key)$/, (end) => (end === '.cert' ? '.key' : '.cert'));
    if (!names.includes(other)) throw new ConfigFileError(file, `it needs ${other} in the same directory`);
    if (name.endsWith('.cert')) client.push(await readClientPair([file, posix.join(dir, other)], root));
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
    const stats = await inFile(dir, () => statPath(dir, root).catch(undefinedIf('denied')));
    if (stats?.isDirectory() === false) throw new ConfigFileError(dir, 'is not a directory');
    if (stats !== undefined) return dir;
  }
  return undefined;
}
