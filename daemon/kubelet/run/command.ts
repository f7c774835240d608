/** How to start a program of the node: directly, or by `chroot` if the node's root is mounted in a directory. */
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** The root directory of the program, if it is not our own. */
  readonly inRoot?: string;
}

/** Paths of `chroot` in distributions. */
const chrootPrograms = ['/usr/sbin/chroot', '/usr/bin/chroot', '/sbin/chroot', '/bin/chroot'];

/** @param path of the program inside the host root */
export function hostCommand(hostRoot: string, path: string, args: readonly string[] = []): Command {
  const root = resolve(hostRoot);
  if (root === '/') return { file: path, args };
  const chroot = chrootPrograms.find(isExecutable) ?? 'chroot';
  return { file: chroot, args: [root, path, ...args], inRoot: root };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
