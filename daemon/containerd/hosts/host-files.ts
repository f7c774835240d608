/**
 * The directories below `config_path`, read at each lookup as containerd reads them at each pull, so that an edit counts at once. One thing
 * is not as in containerd: a hosts.toml that was good and is broken now keeps what it said, because a file that is just being written would
 * otherwise make all its mirrors vanish for a moment, and with them what is known of their images.
 */
import { join } from 'node:path';
import type { HostConfig } from './hosts-file.ts';
import { loadHostDirectory } from './host-directory.ts';
import type { ContainerdRules } from '../config/rules.ts';

export interface HostFiles {
  readonly hosts: readonly HostConfig[];
  /** What is wrong with hosts.toml, and what counts instead. */
  readonly problem?: { readonly origin: string; readonly message: string };
}

export interface HostFilesReader {
  /**
   * @param dir inside the host root
   * @throws HostFilesError where containerd's pull would fail
   */
  read(dir: string, rules: ContainerdRules): Promise<HostFiles>;
}

/** Directories whose last good hosts.toml is kept; nodes have a handful. */
const maxKept = 1000;

/** @param hostRoot directory that stands for `/` */
export function createHostFilesReader(hostRoot: string): HostFilesReader {
  const good = new Map<string, readonly HostConfig[]>();
  return {
    read: async (dir, rules) => {
      const { hosts, invalid } = await loadHostDirectory(dir, rules, hostRoot);
      if (!invalid) {
        good.delete(dir);
        good.set(dir, hosts);
        const oldest = good.keys().next();
        if (good.size > maxKept && !oldest.done) good.delete(oldest.value);
        return { hosts };
      }
      const kept = good.get(dir);
      const consequence = kept
        ? 'its last good content stays in force, while containerd goes on without its hosts'
        : 'as in containerd, only certificate files beside it count';
      const problem = { origin: join(dir, 'hosts.toml'), message: `${invalid.message}; ${consequence}` };
      return { hosts: kept ?? hosts, problem };
    },
  };
}
