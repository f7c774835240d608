/**
 * The containerd versions that are compared: found where they are (`KUBE_BIN_DIR`, the PATH, the cache), else unpacked
 * from a Debian package (not installed: the suite has lists and a cache of its own), else built from the Go module.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { built, cache, onPath, run, say } from '../parts.ts';

interface Wanted {
  /** Module and version to build where nothing else gives this minor version. */
  readonly module: string;
  readonly version: string;
  /** Debian suite whose package has, or had, this minor version. */
  readonly suite?: string;
}

export const containerdVersions = {
  '1.6': { module: 'github.com/containerd/containerd/cmd/containerd', version: 'v1.6.36', suite: 'bookworm' },
  '1.7': { module: 'github.com/containerd/containerd/cmd/containerd', version: 'v1.7.24', suite: 'trixie' },
  '2.1': { module: 'github.com/containerd/containerd/v2/cmd/containerd', version: 'v2.1.9', suite: 'sid' },
  '2.4': { module: 'github.com/containerd/containerd/v2/cmd/containerd', version: 'v2.4.2' },
} as const satisfies Record<string, Wanted>;

export type ContainerdVersion = keyof typeof containerdVersions;

export interface ContainerdProgram {
  readonly minor: ContainerdVersion;
  /** As the program says it, such as `1.6.20~ds1`. */
  readonly version: string;
  readonly path: string;
}

/** Answering `--version` takes milliseconds. */
const versionTimeoutMs = 10_000;

/**
 * A containerd of this minor version, after making sure that it is there.
 * @throws where it cannot be had; the message says what was tried
 */
export function containerdProgram(minor: ContainerdVersion): ContainerdProgram {
  const wanted: Wanted = containerdVersions[minor];
  mkdirSync(cache, { recursive: true });
  const found = candidates(minor).map((path) => programAt(path, minor));
  const first = found.find((program) => program !== undefined);
  if (first) return first;
  const unpacked = wanted.suite === undefined ? undefined : fromDebian(minor, wanted.suite);
  if (unpacked) return unpacked;
  const program = programAt(
    built(`containerd-${wanted.version.slice(1)}`, { ...wanted, program: 'containerd' }),
    minor,
  );
  if (!program) throw new Error(`${wanted.module}@${wanted.version} is no containerd ${minor}`);
  return program;
}

function candidates(minor: string): string[] {
  const kept = readdirSync(cache)
    .filter((name) => name.startsWith(`containerd-${minor}.`))
    .map((name) => join(cache, name));
  const kubeBin = process.env['KUBE_BIN_DIR'] ?? join(homedir(), '.cache', 'kube-bin', 'v1.36.3');
  const directories = [kubeBin, ...(process.env['PATH'] ?? '').split(delimiter)];
  return [...kept, ...directories.map((directory) => join(directory, 'containerd'))].filter((path) =>
    existsSync(path),
  );
}

/** `containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3` → `1.6.20~ds1` */
function programAt(path: string, minor: ContainerdVersion): ContainerdProgram | undefined {
  const text = execFileSync(path, ['--version'], { encoding: 'utf8', timeout: versionTimeoutMs });
  const version = /^containerd \S+ v?(\S+)/.exec(text)?.[1];
  return version?.startsWith(`${minor}.`) === true ? { minor, version, path } : undefined;
}

/**
 * The shim of that containerd, from the same Debian package: shims of another time do not work with it.
 * @throws where it cannot be had
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
    throw new Error(`the shim of containerd ${version} is not in the Debian suite ${suite}`);
  chmodSync(path, 0o755);
  return path;
}

/** Undefined where the suite has another version by now, or where this machine has no apt-get. */
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

/** Unpacks the package containerd of a suite and hands the folder with its programs on. */
function inDebian<T>(suite: string, use: (programs: string) => T | undefined): T | undefined {
  if (onPath('apt-get') === undefined || onPath('dpkg-deb') === undefined) return undefined;
  say(`unpacking containerd from the Debian suite ${suite}`);
  const directory = join(cache, `unpack-${suite}-${process.pid}`);
  try {
    const env = { APT_CONFIG: aptConfiguration(directory, suite) };
    run('apt-get', ['update', '-qq'], env);
    run(
      'sh',
      ['-c', 'cd "$1" && apt-get download -qq containerd && dpkg-deb -x containerd_*.deb .', 'sh', directory],
      env,
    );
    return use(join(directory, 'usr', 'bin'));
  } catch (error) {
    say(`the Debian suite ${suite} cannot be had: ${(error as Error).message}`);
    return undefined;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** apt with nothing of this machine's but the keyring: its own sources, lists, cache and status. */
function aptConfiguration(directory: string, suite: string): string {
  for (const name of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(join(directory, name), { recursive: true });
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const sources = join(directory, 'sources.list');
  writeFileSync(sources, `deb [signed-by=${keyring}] http://deb.debian.org/debian ${suite} main\n`);
  const path = join(directory, 'apt.conf');
  writeFileSync(
    path,
    Object.entries({
      'Dir::State': directory,
      'Dir::State::lists': join(directory, 'lists'),
      'Dir::State::status': '/dev/null',
      'Dir::Cache': join(directory, 'cache'),
      'Dir::Etc::sourcelist': sources,
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::Etc::preferences': '/dev/null',
      'Dir::Etc::preferencesparts': '/dev/null',
      'Acquire::Languages': 'none',
      'APT::Sandbox::User': 'root',
    })
      .map(([key, value]) => `${key} "${value}";\n`)
      .join(''),
  );
  return path;
}
