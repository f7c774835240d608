/** Programs of Debian packages: found, else installed by apt-get as root. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onPath, refuseInBox, run, say } from './cache.ts';

export const debianPackages = {
  'docker-registry': 'docker-registry',
  skopeo: 'skopeo',
  runc: 'runc',
  buildah: 'buildah',
  iptables: 'iptables',
  busybox: 'busybox-static',
  jq: 'jq',
  gcc: 'build-essential',
} as const;

export type DebianProgram = keyof typeof debianPackages;

/** Where Debian puts the CNI plugins. */
export const cniPlugins = '/usr/lib/cni';

/** The path of a program. @throws Error if it is neither there nor can be installed */
export function debianProgram(name: DebianProgram): string {
  return foundOrInstalled(debianPackages[name], () => onPath(name));
}

export function installCniPlugins(): void {
  foundOrInstalled('containernetworking-plugins', () =>
    [join(cniPlugins, 'bridge')].find((path) => existsSync(path)),
  );
}

let listsAreFresh = false;

function foundOrInstalled(name: string, find: () => string | undefined): string {
  const found = find();
  if (found !== undefined) return found;
  refuseInBox(`the Debian package ${name}`);
  if (onPath('apt-get') === undefined || process.getuid?.() !== 0)
    throw new Error(`the Debian package ${name} is missing: installing it needs root and apt-get`);
  say(`installing the Debian package ${name}`);
  if (!listsAreFresh) run('apt-get', ['update', '-qq']);
  listsAreFresh = true;
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name]);
  const path = find();
  if (path === undefined) throw new Error(`the Debian package ${name} does not have the expected file`);
  return path;
}
