/** The containerd versions of `e2e:node`: found, else unpacked from a Debian package, else built. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cache, installed, onPath, run, say } from './cache.ts';
import { downloadPackages } from './debian.ts';
import { built } from './go.ts';
import { kubernetesFolder } from './kubernetes.ts';

interface Wanted {
  /** Module and version to build if nothing else gives this minor version. */
  readonly module: string;
  readonly version: string;
  /** Debian suite that has, or had, this minor version. */
  readonly suite?: string;
}

export const containerdVersions = {
  '1.6': { module: 'github.com/containerd/containerd', version: 'v1.6.36', suite: 'bookworm' },
  '1.7': { module: 'github.com/containerd/containerd', version: 'v1.7.24', suite: 'trixie' },
  '2.1': { module: 'github.com/containerd/containerd/v2', version: 'v2.1.9', suite: 'sid' },
  '2.4': { module: 'github.com/containerd/containerd/v2', version: 'v2.4.2' },
} as const satisfies Record<string, Wanted>;

export type ContainerdVersion = keyof typeof containerdVersions;

export interface ContainerdProgram {
  readonly minor: ContainerdVersion;
  /** As the program prints it, such as `1.6.20~ds1`. */
  readonly version: string;
  readonly path: string;
}

/** Answering `--version` takes milliseconds. */
const versionTimeoutMs = 10_000;

/** A containerd of this minor version. @throws Error if it can neither be found, unpacked nor built */
export function containerdProgram(minor: ContainerdVersion): ContainerdProgram {
  const { module, version, suite }: Wanted = containerdVersions[minor];
  mkdirSync(cache, { recursive: true });
  const kept = readdirSync(cache).filter((name) => name.startsWith(`containerd-${minor}.`));
  // The set of Kubernetes has the newest one already.
  const paths = [
    ...kept.map((name) => join(cache, name)),
    ...installed('containerd'),
    join(kubernetesFolder, 'containerd'),
  ];
  for (const path of paths.filter((each) => existsSync(each))) {
    const found = programAt(path, minor);
    if (found !== undefined) return found;
  }
  const unpacked = suite === undefined ? undefined : fromDebian(minor, suite);
  if (unpacked) return unpacked;
  const path = built('containerd', { path: module, version }, `${module}/cmd/containerd`);
  const program = programAt(path, minor);
  if (!program) throw new Error(`${module}@${version} is not containerd ${minor}`);
  return program;
}

/** `containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3` → `1.6.20~ds1` */
function programAt(path: string, minor: ContainerdVersion): ContainerdProgram | undefined {
  const text = execFileSync(path, ['--version'], { encoding: 'utf8', timeout: versionTimeoutMs });
  const version = /^containerd \S+ v?(\S+)/.exec(text)?.[1];
  return version?.startsWith(`${minor}.`) === true ? { minor, version, path } : undefined;
}

/**
 * The shim from the same Debian package. Shims of another release do not work with it.
 * @throws Error if the suite has another version now
 */
export function containerdShim(minor: '1.6' | '1.7'): string {
  const { version } = containerdProgram(minor);
  const path = join(cache, `containerd-shim-runc-v2-${version}`);
  if (existsSync(path)) return path;
  const { suite } = containerdVersions[minor];
  const found = inDebian(suite, (programs) => {
    if (programAt(join(programs, 'containerd'), minor)?.version !== version) return undefined;
    copyFileSync(join(programs, 'containerd-shim-runc-v2'), path);
    return path;
  });
  if (found === undefined)
    throw new Error(`the Debian suite ${suite} does not have the shim of containerd ${version}`);
  chmodSync(path, 0o755);
  return path;
}

/** Undefined if the suite has another version now, or if this machine has no apt-get. */
function fromDebian(minor: ContainerdVersion, suite: string): ContainerdProgram | undefined {
  return inDebian(suite, (programs) => {
    const program = programAt(join(programs, 'containerd'), minor);
    if (!program) return undefined;
    const path = join(cache, `containerd-${program.version}`);
    copyFileSync(program.path, path);
    chmodSync(path, 0o755);
    return { ...program, path };
  });
}

/** Unpacks the package containerd of a suite, and calls `use` with the folder of its programs. */
function inDebian<T>(suite: string, use: (programs: string) => T | undefined): T | undefined {
  if (onPath('apt-get') === undefined || onPath('dpkg-deb') === undefined) return undefined;
  say(`unpacking containerd from the Debian suite ${suite}`);
  const directory = join(cache, `unpack-${suite}-${process.pid}`);
  try {
    for (const deb of downloadPackages(directory, [`debian ${suite}`], ['containerd']))
      run('dpkg-deb', ['-x', deb, directory]);
    return use(join(directory, 'usr', 'bin'));
  } catch (error) {
    say(`cannot get the Debian suite ${suite}: ${(error as Error).message}`);
    return undefined;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
