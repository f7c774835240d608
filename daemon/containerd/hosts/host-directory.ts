/**
 * The directory of a registry namespace below `config_path`: `hosts.toml`, else certificate files in Docker's
 * layout (containerd `core/remotes/docker/config/{hosts,config_unix}.go`).
 */
import { join } from 'node:path';
import type { Problem } from '../../../src/credentials/credential.ts';
import { certificatesOf, clientPairIn, orBroken, type NodeFiles } from '../../node-files.ts';
import { ConfigFileError, InvalidConfig, tomlText } from '../../toml.ts';
import type { ContainerdRules } from '../config/rules.ts';
import { noHost, parseHostsFile, type HostConfig } from './hosts-file.ts';

/** Enough for a hosts.toml of a hundred mirrors with long headers. */
export const maxHostsFileBytes = 512 * 1024;
/** A directory of certificates of one registry has fewer entries. */
const maxEntries = 1000;
/** Nodes have one directory for each configured registry. */
const maxDirectories = 1000;

/** The directory of every namespace without one of its own. */
export const defaultDirectory = '_default';

/** A domain in a reference. Other texts (`a_b.c/d`) could name the directory of another registry. */
const domain =
  /^(?=.{1,260}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])(?::\d+)?$/;

/** Possible names of a namespace's directory, best first. */
export function directoryNames(namespace: string): string[] {
  if (!domain.test(namespace)) return [];
  const colon = namespace.lastIndexOf(':');
  const withoutColon = `${namespace.slice(0, colon)}_${namespace.slice(colon + 1)}_`;
  return [...(colon > 0 ? [withoutColon] : []), namespace, defaultDirectory];
}

export interface HostDirectory {
  readonly hosts: readonly HostConfig[];
  /** What is wrong with its hosts.toml. */
  readonly problem?: Problem;
  /** The hosts are those of a valid hosts.toml, maybe an earlier one. */
  readonly isGood: boolean;
}

/** Keys: paths. A `config_path` whose directories cannot be listed stands for itself, with a slash at its end. */
export type HostDirectories = ReadonlyMap<string, HostDirectory | ConfigFileError>;

/**
 * Finds the directory: the first root with any of the names counts, so `_default` in the first root precedes
 * the exact name in the second.
 * @param roots parts of `config_path`
 * @throws ConfigFileError if containerd's pull would fail
 */
export function findHostDirectory(
  directories: HostDirectories,
  roots: readonly string[],
  namespace: string,
): { readonly dir: string; readonly hosts: readonly HostConfig[] } | undefined {
  const names = directoryNames(namespace);
  for (const dir of roots.flatMap((root) => [`${root}/`, ...names.map((name) => join(root, name))])) {
    const found = directories.get(dir);
    if (found instanceof ConfigFileError) throw found;
    if (found) return { dir, hosts: found.hosts };
  }
  return undefined;
}

/**
 * All directories, with their certificates. Unlike containerd, a hosts.toml that breaks keeps its last good
 * content: while a file is being written, all its mirrors would otherwise vanish, and the cached facts of their
 * images with them.
 * @param before the earlier reading
 */
export async function loadHostDirectories(
  roots: readonly string[],
  rules: ContainerdRules,
  files: NodeFiles,
  before: HostDirectories,
): Promise<HostDirectories> {
  const found = new Map<string, HostDirectory | ConfigFileError>();
  for (const root of roots) {
    const names = await orBroken(root, () => files.names(root, maxDirectories));
    if (names instanceof ConfigFileError) {
      found.set(`${root}/`, names);
      continue;
    }
    for (const name of names.filter((each) => !each.startsWith('.'))) {
      const dir = join(root, name);
      const loaded = await orBroken(dir, () => load(dir, rules, files, before.get(dir)));
      if (loaded) found.set(dir, loaded);
    }
  }
  return found;
}

async function load(
  dir: string,
  rules: ContainerdRules,
  files: NodeFiles,
  before: HostDirectory | ConfigFileError | undefined,
): Promise<HostDirectory | undefined> {
  if ((await files.stat(dir)) === undefined) return undefined;
  const { hosts, invalid } = await loadHostDirectory(dir, rules, files);
  const good =
    invalid && before && !(before instanceof ConfigFileError) && before.isGood ? before.hosts : undefined;
  const consequence = good
    ? 'its last good content stays in force, while containerd ignores its hosts'
    : 'as in containerd, only the certificate files in its directory are used';
  return {
    hosts: good ?? (await Promise.all(hosts.map((host) => withCertificates(host, files)))),
    isGood: !invalid || good !== undefined,
    ...(invalid && {
      problem: { origin: join(dir, 'hosts.toml'), message: `${invalid.message}; ${consequence}` },
    }),
  };
}

/**
 * Reads a directory as containerd does for each pull.
 * @returns `invalid` if hosts.toml has an error; then `hosts` are the certificate files, as in containerd
 * @throws ConfigFileError if containerd's pull would fail
 */
export async function loadHostDirectory(
  dir: string,
  rules: ContainerdRules,
  files: NodeFiles,
): Promise<{ readonly hosts: readonly HostConfig[]; readonly invalid?: InvalidConfig }> {
  if ((await files.stat(dir))?.isDirectory() === false) throw new ConfigFileError(dir, 'is not a directory');
  const bytes = await files.read(join(dir, 'hosts.toml'), maxHostsFileBytes, 'missing');
  if (bytes === undefined || bytes.length === 0) return { hosts: [await certificateFiles(dir, files)] };
  try {
    return { hosts: parseHostsFile(dir, tomlText(bytes), rules) };
  } catch (error) {
    if (!(error instanceof InvalidConfig)) throw error;
    return { hosts: [await certificateFiles(dir, files)], invalid: error };
  }
}

/** `*.crt`: CAs. `*.cert`: client certificates; their key is in `*.key`, else in the same file. */
async function certificateFiles(dir: string, files: NodeFiles): Promise<HostConfig> {
  const ca: string[] = [];
  const client: [string, string][] = [];
  for (const name of await files.names(dir, maxEntries)) {
    if (!/\.(?:crt|cert)$/.test(name)) continue;
    const path = join(dir, name);
    if ((await files.stat(path))?.isDirectory() === true) continue;
    if (name.endsWith('.crt')) ca.push(path);
    else {
      const key = path.replace(/cert$/, 'key');
      client.push([path, (await files.stat(key)) === undefined ? '' : key]);
    }
  }
  return { ...noHost, ...(ca.length > 0 && { ca }), ...(client.length > 0 && { client }) };
}

/**
 * Adds the certificates. A file that cannot be read or has no certificate fails the whole pull, not only the
 * requests to that host (containerd `tlsConfigFromHost`).
 * @throws ConfigFileError
 */
export async function withCertificates<Host extends HostConfig>(host: Host, files: NodeFiles): Promise<Host> {
  const authoritiesIn = async (file: string) => {
    const found = await certificatesOf(file, files);
    if (found.length === 0) throw new ConfigFileError(file, 'it contains no certificate in PEM');
    return found;
  };
  const [ca, client] = await Promise.all([
    Promise.all((host.ca ?? []).map(authoritiesIn)),
    Promise.all((host.client ?? []).map((pair) => clientPairIn(pair, files))),
  ]);
  return { ...host, certificates: { ca: ca.flat(), client } };
}
