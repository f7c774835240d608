/**
 * Files from Debian: the C and C++ libraries that Node needs and their loader, and `chroot`, with which the
 * agent runs programs of its node. Packages are downloaded for each architecture with separate package lists,
 * so that the machine's own do not change, and unpacked without installation.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Architecture } from './node-runtime.ts';

/** Packages, and patterns of the files that are used. */
const wanted: Readonly<Record<string, readonly RegExp[]>> = {
  libc6: [
    /\/(libc|libm|libdl|libpthread|libresolv|libnss_dns|libnss_files)\.so\.\d+$/,
    /\/ld-linux[^/]*\.so\.\d+$/,
  ],
  'libgcc-s1': [/\/libgcc_s\.so\.1$/],
  'libstdc++6': [/\/libstdc\+\+\.so\.6(\.[\d.]+)?$/],
  coreutils: [/\/sbin\/chroot$/],
};

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: Architecture;
  readonly sha256: string;
}

const timeoutMs = 5 * 60_000;

/** Debian suite: its C library is old enough for npm's Node and new enough for security updates. */
const suite = 'bookworm';

/**
 * Puts the files into a root directory.
 * @param cache directory for downloads
 * @returns the packages that they come from
 */
export function placeLibraries(
  architecture: Architecture,
  cache: string,
  root: string,
): readonly DebianPackage[] {
  const debs = download(architecture, cache);
  const unpacked = join(cache, `unpacked-${architecture}`);
  rmSync(unpacked, { recursive: true, force: true });
  mkdirSync(unpacked);
  for (const deb of debs) execFileSync('dpkg', ['-x', deb, unpacked]);
  const files = readdirSync(unpacked, { recursive: true, encoding: 'utf8' }).map((path) => `/${path}`);
  for (const [name, patterns] of Object.entries(wanted)) {
    for (const pattern of patterns) {
      const found = files.filter((path) => pattern.test(path) && !path.includes('/gconv/'));
      if (found.length === 0)
        throw new Error(`the package ${name} for ${architecture} has no file ${String(pattern)}`);
      for (const path of found)
        cpSync(join(unpacked, path), join(root, merged(path)), { verbatimSymlinks: true });
    }
  }
  return debs.map((deb) => describe(deb, architecture));
}

/** `/lib` and similar folders are links to those in `/usr`, as in Debian itself. */
function merged(path: string): string {
  return path.startsWith('/usr/') ? path : `/usr${path}`;
}

function download(architecture: Architecture, cache: string): readonly string[] {
  const state = join(cache, `apt-${architecture}`);
  const names = Object.keys(wanted);
  const folder = join(state, 'debs');
  mkdirSync(folder, { recursive: true });
  const have = (): string[] =>
    names.flatMap((name) =>
      readdirSync(folder)
        .filter((file) => file.startsWith(`${name}_`))
        .slice(0, 1),
    );
  if (have().length < names.length) {
    for (const part of ['lists/partial', 'archives/partial'])
      mkdirSync(join(state, part), { recursive: true });
    const sources = join(state, 'sources.list');
    const signed = '[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]';
    writeFileSync(
      sources,
      `deb ${signed} http://deb.debian.org/debian ${suite} main\n` +
        `deb ${signed} http://deb.debian.org/debian-security ${suite}-security main\n`,
    );
    writeFileSync(join(state, 'status'), '');
    const options = {
      'APT::Architecture': architecture,
      'APT::Architectures': architecture,
      'Dir::Etc::sourcelist': sources,
      'Dir::Etc::sourceparts': '-',
      'Dir::State::lists': join(state, 'lists'),
      'Dir::State::status': join(state, 'status'),
      'Dir::Cache': state,
      'APT::Sandbox::User': 'root',
    };
    const flags = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
    const run = (...args: readonly string[]): void => {
      execFileSync('apt-get', [...flags, '-qq', ...args], {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'inherit'],
        timeout: timeoutMs,
      });
    };
    run('update');
    run('download', ...names);
  }
  const debs = have().map((file) => join(folder, file));
  if (debs.length < names.length)
    throw new Error(
      `of ${names.join(', ')} only ${debs.map((deb) => basename(deb)).join(', ')} could be downloaded`,
    );
  return debs;
}

function describe(deb: string, architecture: Architecture): DebianPackage {
  const fields = execFileSync('dpkg-deb', ['--show', '--showformat', '${Package} ${Version}', deb], {
    encoding: 'utf8',
  });
  const [name = '', version = ''] = fields.split(' ');
  return {
    name,
    version,
    architecture,
    sha256: createHash('sha256').update(readFileSync(deb)).digest('hex'),
  };
}

/** Whether this machine has the required tools. */
export function canUnpackDebian(): boolean {
  return ['apt-get', 'dpkg', 'dpkg-deb'].every((program) =>
    (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program))),
  );
}
