/** Programs of Debian packages: found, else installed by apt-get as root. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
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

/**
 * Downloads packages with apt's own sources, lists, cache and status below a folder; only the keyring is this
 * machine's.
 * @param sources such as `debian bookworm` @param architecture default: this machine's
 * @returns the files of the packages
 */
export function downloadPackages(
  folder: string,
  sources: readonly string[],
  packages: readonly string[],
  architecture?: string,
): readonly string[] {
  const debs = join(folder, 'debs');
  for (const path of ['lists/partial', 'cache/archives/partial', 'debs'])
    mkdirSync(join(folder, path), { recursive: true });
  const list = join(folder, 'sources.list');
  const start = 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/';
  writeFileSync(list, sources.map((source) => `${start}${source} main\n`).join(''));
  writeFileSync(join(folder, 'status'), '');
  const options = {
    ...(architecture !== undefined && {
      'APT::Architecture': architecture,
      'APT::Architectures': architecture,
    }),
    'APT::Sandbox::User': 'root',
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::Etc::sourcelist': list,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': folder,
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::State::status': join(folder, 'status'),
  };
  const flags = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  run('apt-get', [...flags, '-qq', 'update']);
  execFileSync('apt-get', [...flags, '-qq', 'download', ...packages], {
    cwd: debs,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 5 * 60_000,
  });
  return readdirSync(debs).map((file) => join(debs, file));
}
