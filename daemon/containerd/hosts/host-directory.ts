/**
 * The directory of a registry namespace below `config_path`, and what is in it: `hosts.toml`, else certificate files as
 * Docker lays them out (containerd `core/remotes/docker/config/{hosts,config_unix}.go`).
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FileError } from '../../../src/files/error.ts';
import { listDirectory, readBounded } from '../../../src/files/read.ts';
import { resolveInRoot } from '../../../src/files/root.ts';
import { HostsFileInvalid, parseHostsFile, type HostConfig } from './hosts-file.ts';
import { HostFilesError } from '../lookup-error.ts';
import type { ContainerdRules } from '../config/rules.ts';
import { TomlRefused, tomlText } from '../config/toml.ts';

/** A hosts.toml of a hundred mirrors with long headers stays below this. */
export const maxHostsFileBytes = 512 * 1024;

/** Certificates of one registry; a directory with more is something else. */
const maxEntries = 1000;

/** Serves every namespace that has no directory of its own. */
export const defaultDirectory = '_default';

/**
 * A registry's domain as references have it. What else stands in front of a slash (`a_b.c/d`) could name the directory of
 * another registry, so it gets none.
 */
const domain =
  /^(?=.{1,260}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])(?::\d+)?$/;

/** Names that a namespace's directory may have, best first. */
export function directoryNames(namespace: string): string[] {
  if (!domain.test(namespace)) return [];
  const colon = namespace.lastIndexOf(':');
  const withoutColon = `${namespace.slice(0, colon)}_${namespace.slice(colon + 1)}_`;
  return [...(colon > 0 ? [withoutColon] : []), namespace, defaultDirectory];
}

/**
 * Finds the directory: in the first root that has any of the names, so `_default` of the first goes before the exact name in the second.
 * @param roots parts of `config_path`
 * @param hostRoot directory that stands for `/`
 * @returns undefined where there is none
 * @throws FileError where one is there but cannot be looked at
 */
export async function findHostDirectory(
  roots: readonly string[],
  namespace: string,
  hostRoot?: string,
): Promise<string | undefined> {
  for (const root of roots) {
    for (const name of directoryNames(namespace)) {
      const dir = join(root, name);
      if ((await lookAt(dir, hostRoot)) !== undefined) return dir;
    }
  }
  return undefined;
}

/** What a directory says. */
export interface HostDirectory {
  readonly hosts: readonly HostConfig[];
  /** Why its hosts.toml does not count; then `hosts` are the certificate files, as in containerd. */
  readonly invalid?: TomlRefused | HostsFileInvalid;
}

/**
 * Reads a directory as containerd does at each pull.
 * @throws HostFilesError where containerd's pull would fail
 */
export async function loadHostDirectory(
  dir: string,
  rules: ContainerdRules,
  hostRoot?: string,
): Promise<HostDirectory> {
  try {
    if ((await lookAt(dir, hostRoot))?.isDirectory() === false)
      throw new HostFilesError(dir, 'is no directory');
    const bytes = await readHostsFile(join(dir, 'hosts.toml'), hostRoot);
    if (bytes === undefined || bytes.length === 0) return { hosts: [await certificateFiles(dir, hostRoot)] };
    try {
      return { hosts: parseHostsFile(dir, tomlText(bytes), rules) };
    } catch (error) {
      if (!(error instanceof TomlRefused || error instanceof HostsFileInvalid)) throw error;
      return { hosts: [await certificateFiles(dir, hostRoot)], invalid: error };
    }
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new HostFilesError(error.where, error.message.replace(`${error.where}: `, ''), error);
  }
}

async function readHostsFile(path: string, root: string | undefined): Promise<Buffer | undefined> {
  try {
    return await readBounded(path, { maxBytes: maxHostsFileBytes, root });
  } catch (error) {
    if (error instanceof FileError && error.code === 'missing') return undefined;
    throw error;
  }
}

/** `*.crt` are CAs, `*.cert` client certificates with the `.key` beside them, else with the key inside. */
async function certificateFiles(dir: string, root: string | undefined): Promise<HostConfig> {
  const ca: string[] = [];
  const client: [string, string][] = [];
  for (const name of await listDirectory(dir, { maxEntries, root })) {
    if (!/\.(?:crt|cert)$/.test(name)) continue;
    const path = join(dir, name);
    if ((await lookAt(path, root))?.isDirectory() === true) continue;
    if (name.endsWith('.crt')) ca.push(path);
    else {
      const key = `${path.slice(0, -'.cert'.length)}.key`;
      client.push([path, (await lookAt(key, root)) === undefined ? '' : key]);
    }
  }
  return {
    scheme: '',
    host: '',
    path: '',
    capabilities: [],
    headers: [],
    ...(ca.length > 0 && { ca }),
    ...(client.length > 0 && { client }),
  };
}

async function lookAt(path: string, root: string | undefined) {
  try {
    return await stat(root === undefined ? path : await resolveInRoot(root, path));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error instanceof FileError
      ? error
      : new FileError('unreadable', path, 'cannot be looked at', error);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'missing' || error.code === 'ENOENT');
}
