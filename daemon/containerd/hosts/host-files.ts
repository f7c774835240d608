/**
 * The directories below `config_path`, read for each lookup as containerd reads them for each pull, so that an edit is in force at
 * once. Unlike containerd, a hosts.toml that breaks keeps its last good content: while a file is being written, all its mirrors
 * would otherwise vanish, and the cached facts of their images with them.
 */
import { join } from 'node:path';
import { BoundedMap } from '../../../src/async/bounded-map.ts';
import type { HostConfig } from './hosts-file.ts';
import { loadHostDirectory } from './host-directory.ts';
import type { ContainerdRules } from '../config/rules.ts';

export interface HostFiles {
  readonly hosts: readonly HostConfig[];
  /** The error in hosts.toml and its consequence. */
  readonly problem?: { readonly origin: string; readonly message: string };
}

export interface HostFilesReader {
  /**
   * @param dir inside the host root
   * @throws ConfigFileError if containerd's pull would fail
   */
  read(dir: string, rules: ContainerdRules): Promise<HostFiles>;
}

/** Directories with a last good hosts.toml; nodes have a handful. */
const maxDirectories = 1000;

/** @param hostRoot directory that stands for `/` */
export function createHostFilesReader(hostRoot: string): HostFilesReader {
  const lastGood = new BoundedMap<string, readonly HostConfig[]>(maxDirectories);
  return {
    read: async (dir, rules) => {
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
    },
  };
}
