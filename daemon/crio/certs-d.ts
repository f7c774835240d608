/**
 * The certificates of a registry host as CRI-O finds them: one directory named like the host, port included
 * (go.podman.io/image docker/docker_client.go `dockerCertDir`, pkg/tlsclientconfig `SetupCertificates`).
 */
import { posix } from 'node:path';
import type { TlsSettings } from '../../src/http/tls/trust.ts';
import { certificatesOf, clientPairIn, orBroken, type NodeFiles } from '../node-files.ts';
import { ConfigFileError } from '../toml.ts';
import type { CrioConf } from './crio-conf.ts';

/** Nodes have one directory for each configured registry. */
const maxHosts = 1000;
/** A host has a handful of files. */
const maxEntries = 100;

export interface HostCertificates extends Pick<TlsSettings, 'ca' | 'client'> {
  readonly dir: string;
}

/** Keys: hosts as written: `docker.io`, not `registry-1.docker.io`. An error fails the endpoints of the host. */
export type Certificates = ReadonlyMap<string, HostCertificates | ConfigFileError>;

/** The first directory of a host counts, even if it is empty. */
export function certificateRoots({ home }: Pick<CrioConf, 'home'>): readonly string[] {
  return [posix.join(home, '.config/containers/certs.d'), '/etc/containers/certs.d', '/etc/docker/certs.d'];
}

/** A directory whose hosts cannot be listed stands for itself. */
export async function loadCertificates(
  conf: Pick<CrioConf, 'home'>,
  files: NodeFiles,
): Promise<Certificates> {
  const found = new Map<string, HostCertificates | ConfigFileError>();
  for (const root of certificateRoots(conf)) {
    const hosts = await orBroken(root, () => files.names(root, maxHosts));
    if (hosts instanceof ConfigFileError) found.set(root, hosts);
    else
      for (const host of hosts) {
        const dir = posix.join(root, host);
        const read = found.has(host) ? undefined : await orBroken(dir, () => directoryOf(dir, files));
        if (read) found.set(host, read);
      }
  }
  return found;
}

async function directoryOf(dir: string, files: NodeFiles): Promise<HostCertificates | undefined> {
  const stats = await files.stat(dir, 'denied');
  if (stats === undefined) return undefined;
  if (!stats.isDirectory()) throw new ConfigFileError(dir, 'is not a directory');
  const ca: string[] = [];
  const client: TlsSettings['client'][number][] = [];
  const names = await files.names(dir, maxEntries, 'denied');
  for (const name of names) {
    const file = posix.join(dir, name);
    // A link to nothing is skipped.
    if (name.endsWith('.crt') && (await files.stat(file))) ca.push(...(await certificatesOf(file, files)));
    const other = name.replace(/\.(?:cert|key)$/, (end) => (end === '.cert' ? '.key' : '.cert'));
    if (!names.includes(other)) throw new ConfigFileError(file, `it needs ${other} in the same directory`);
    if (name.endsWith('.cert')) client.push(await clientPairIn([file, posix.join(dir, other)], files));
  }
  return { dir, ca, client };
}
