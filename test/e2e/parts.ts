/**
 * The programs that end-to-end tests run: found where they are, else installed (Debian packages) or built (Go modules,
 * kept in a cache by version). Says what it does; a program that cannot be had ends the run with its name.
 *
 *   ARCHWRIGHT_E2E_CACHE   where built programs are kept (~/.cache/archwright/e2e)
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

interface DebianPart {
  readonly package: string;
  readonly program: string;
}
export interface GoPart {
  readonly module: string;
  readonly version: string;
  /** Name of the program that `go install` makes. */
  readonly program: string;
}

export const parts = {
  'docker-registry': { package: 'docker-registry', program: 'docker-registry' },
  skopeo: { package: 'skopeo', program: 'skopeo' },
  runc: { package: 'runc', program: 'runc' },
  buildah: { package: 'buildah', program: 'buildah' },
  iptables: { package: 'iptables', program: 'iptables' },
  busybox: { package: 'busybox-static', program: 'busybox' },
  distribution: {
    module: 'github.com/distribution/distribution/v3/cmd/registry',
    version: 'v3.1.2',
    program: 'registry',
  },
  crane: { module: 'github.com/google/go-containerregistry/cmd/crane', version: 'v0.20.6', program: 'crane' },
} as const satisfies Record<string, DebianPart | GoPart>;

export type PartName = keyof typeof parts;

/** Where programs are kept. */
export const cache = process.env['ARCHWRIGHT_E2E_CACHE'] ?? join(homedir(), '.cache', 'archwright', 'e2e');

/** Building distribution takes about a minute on two cores; a cold download of its modules may double that. */
const buildTimeoutMs = 10 * 60_000;

/**
 * The path of a program, after making sure that it is there.
 * @throws where it is neither there nor to be had; the message says what was tried
 */
export function part(name: PartName): string {
  const wanted: DebianPart | GoPart = parts[name];
  return 'package' in wanted ? debian(wanted) : built(name, wanted);
}

function debian(wanted: DebianPart): string {
  const found = onPath(wanted.program);
  if (found !== undefined) return found;
  installPackage(wanted.package);
  const installed = onPath(wanted.program);
  if (installed === undefined)
    throw new Error(`the package ${wanted.package} has no program ${wanted.program}`);
  return installed;
}

function installPackage(name: string): void {
  if (onPath('apt-get') === undefined || process.getuid?.() !== 0) {
    throw new Error(`the Debian package ${name} is missing: installing it needs root and apt-get`);
  }
  say(`installing the Debian package ${name}`);
  run('apt-get', ['update', '-qq']);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name]);
}

/** Debian packages whose libraries tests load, and where below /usr/lib. */
const libraries = { libfaketime: { package: 'libfaketime', file: 'faketime/libfaketime.so.1' } } as const;

/**
 * The path of a library, after making sure that it is there.
 * @throws where it is neither there nor to be had
 */
export function library(name: keyof typeof libraries): string {
  const wanted = libraries[name];
  const find = (): string | undefined =>
    ['', ...readdirSync('/usr/lib').filter((folder) => folder.endsWith('-linux-gnu'))]
      .map((folder) => join('/usr/lib', folder, wanted.file))
      .find((path) => existsSync(path));
  const found = find() ?? (installPackage(wanted.package), find());
  if (found === undefined) throw new Error(`the package ${wanted.package} has no ${wanted.file}`);
  return found;
}

/** Builds a Go program unless the cache has it, and says where it is. */
export function built(name: string, wanted: GoPart): string {
  const path = join(cache, `${name}-${wanted.version}`);
  if (existsSync(path)) return path;
  if (onPath('go') === undefined) throw new Error(`${name} is missing: building ${wanted.module} needs go`);
  say(`building ${wanted.module}@${wanted.version} into ${path}`);
  const bin = join(cache, `build-${name}-${process.pid}`);
  mkdirSync(bin, { recursive: true });
  run('go', ['install', '-trimpath', '-ldflags', '-s -w', `${wanted.module}@${wanted.version}`], {
    GOBIN: bin,
    CGO_ENABLED: '0',
    GOWORK: 'off',
  });
  renameSync(join(bin, wanted.program), path);
  return path;
}

/** Runs a program to its end; what it says on standard error is shown. */
export function run(program: string, args: readonly string[], env: Record<string, string> = {}): void {
  execFileSync(program, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: buildTimeoutMs,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', ...env },
  });
}

export function onPath(program: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, program))
    .find((path) => existsSync(path));
}

export function say(text: string): void {
  process.stderr.write(`e2e: ${text}\n`);
}
