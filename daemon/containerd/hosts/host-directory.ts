/**
 * The directory of a registry namespace below `config_path`: `hosts.toml`, else certificate files in Docker's
 * layout (containerd `core/remotes/docker/config/{hosts,config_unix}.go`).
 */
import { join } from 'node:path';
import type { Problem } from '../../../src/credentials/credential.ts';
import { BoundedMap } from '../../../src/async/bounded-map.ts';
import {
  FileError,
  listDirectory,
  readBounded,
  statPath,
  undefinedIfMissing,
} from '../../../src/files/read.ts';
import type { ContainerdRules } from '../config/rules.ts';
import { ConfigFileError, InvalidConfig, tomlText } from '../../toml.ts';
import { noHost, parseHostsFile, type HostConfig } from './hosts-file.ts';

/** Enough for a hosts.toml of a hundred mirrors with long headers. */
export const maxHostsFileBytes = 512 * 1024;
/** A directory of certificates of one registry has fewer entries. */
const maxEntries = 1000;
/** Directories with a last good hosts.toml; nodes have a handful. */
const maxDirectories = 1000;

/** For every namespace without a directory of its own. */
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

/**
 * Finds the directory: the first root with any of the names counts, so `_default` in the first root precedes
 * the exact name in the second.
 * @param roots parts of `config_path`
 * @throws FileError if a directory exists but cannot be examined
 */
export async function findHostDirectory(
  roots: readonly string[],
  namespace: string,
  hostRoot?: string,
): Promise<string | undefined> {
  const names = directoryNames(namespace);
  for (const dir of roots.flatMap((root) => names.map((name) => join(root, name)))) {
    if ((await statPath(dir, hostRoot)) !== undefined) return dir;
  }
  return undefined;
}

/**
 * Reads a directory as containerd does for each pull.
 * @returns `invalid` if hosts.toml has an error; then `hosts` are the certificate files, as in containerd
 * @throws ConfigFileError if containerd's pull would fail
 */
export async function loadHostDirectory(
  dir: string,
  rules: ContainerdRules,
  hostRoot?: string,
): Promise<{ readonly hosts: readonly HostConfig[]; readonly invalid?: InvalidConfig }> {
  try {
    if ((await statPath(dir, hostRoot))?.isDirectory() === false)
      throw new ConfigFileError(dir, 'is not a directory');
    const limits = { maxBytes: maxHostsFileBytes, root: hostRoot };
    const bytes = await readBounded(join(dir, 'hosts.toml'), limits).catch(undefinedIfMissing);
    if (bytes === undefined || bytes.length === 0) return { hosts: [await certificateFiles(dir, hostRoot)] };
    try {
      return { hosts: parseHostsFile(dir, tomlText(bytes), rules) };
    } catch (error) {
      if (!(error instanceof InvalidConfig)) throw error;
      return { hosts: [await certificateFiles(dir, hostRoot)], invalid: error };
    }
  } catch (error) {
    throw error instanceof FileError ? new ConfigFileError(error.where, error.reason, error) : error;
  }
}

/** `*.crt`: CAs. `*.cert`: client certificates; their key is in `*.key`, else in the same file. */
async function certificateFiles(dir: string, root: string | undefined): Promise<HostConfig> {
  const ca: string[] = [];
  const client: [string, string][] = [];
  for (const name of await listDirectory(dir, { maxEntries, root })) {
    if (!/\.(?:crt|cert)$/.test(name)) continue;
    const path = join(dir, name);
    if ((await statPath(path, root))?.isDirectory() === true) continue;
    if (name.endsWith('.crt')) ca.push(path);
    else {
      const key = path.replace(/cert$/, 'key');
      client.push([path, (await statPath(key, root)) === undefined ? '' : key]);
    }
  }
  return { ...noHost, ...(ca.length > 0 && { ca }), ...(client.length > 0 && { client }) };
}

export type HostFilesReader = ReturnType<typeof createHostFilesReader>;

/**
 * Reads directories for each lookup as containerd does for each pull, so that an edit is in force at once.
 * Unlike containerd, a hosts.toml that breaks keeps its last good content: while a file is being written, all
 * its mirrors would otherwise vanish, and the cached facts of their images with them. The reader throws
 * ConfigFileError if containerd's pull would fail.
 */
export function createHostFilesReader(hostRoot: string) {
  const lastGood = new BoundedMap<string, readonly HostConfig[]>(maxDirectories);
  return async (
    dir: string,
    rules: ContainerdRules,
  ): Promise<{ readonly hosts: readonly HostConfig[]; readonly problem?: Problem }> => {
    const { hosts, invalid } = await loadHostDirectory(dir, rules, hostRoot);
    if (!invalid) {
      lastGood.set(dir, hosts);
      return { hosts };
    }
    const good = lastGood.get(dir);
    const consequence = good
      ? 'its last good content stays in force, while containerd ignores its hosts'
      : 'as in containerd, only the certificate files in its directory are used';
    const problem = { origin: join(dir, 'hosts.toml'), message: `${invalid.message}; ${consequence}` };
    return { hosts: good ?? hosts, problem };
  };
}
