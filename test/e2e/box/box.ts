/**
 * The box: own namespaces for processes, mounts and network, for a control plane and a node. Files are this
 * machine's, with changes in memory. The network is loopback and a bridge without an uplink. Everything ends
 * with the first process. Outside, the box makes only folders for control groups, and removes them at the
 * end.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Readable } from 'node:stream';
import type { Test } from 'tap';
import { boxVariable, cache } from '../programs/cache.ts';

interface BoxOptions {
  /** TypeScript file that is run inside, as the first process. */
  readonly entry: URL;
  /** Folders besides the project and the cache that must be visible, even if they are mounts of their own. */
  readonly folders: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly onLine: (line: string) => void;
}

interface BoxEnd {
  readonly code: number | null;
  readonly timedOut: boolean;
  readonly stderr: string;
}

const project = fileURLToPath(new URL('../../..', import.meta.url));
/** A clone can have a link to the packages of another one. */
const packages = realpathSync(join(project, 'node_modules'));
const script = fileURLToPath(new URL('box.sh', import.meta.url));
const cgroups = '/sys/fs/cgroup';
const namespaces = '--mount --net --pid --ipc --uts --fork --mount-proc --propagation=private'.split(' ');
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const keptBytes = 16 * 1024;

/** The reason why this machine cannot run a box; `undefined`: it can. */
export function boxProblem(): string | undefined {
  if (process.platform !== 'linux') return 'it needs Linux namespaces';
  if (process.getuid?.() !== 0) return 'namespaces, mounts and control groups need root';
  const group = `archwright-e2e-probe-${process.pid}`;
  try {
    for (const path of groupFolders(group)) mkdirSync(path);
  } catch (error) {
    return `control groups cannot be made: ${(error as Error).message}`;
  } finally {
    removeGroups(group);
  }
  return undefined;
}

/**
 * Runs a program in a box to its end, and removes the box. The program gets its control group in `CGROUP`,
 * and the cache of built programs in the same variable as outside.
 */
export async function runBox({ entry, folders, env, ...options }: BoxOptions): Promise<BoxEnd> {
  const group = `archwright-e2e-${process.pid}`;
  const directory = mkdtempSync(join(tmpdir(), 'archwright-box-'));
  for (const path of groupFolders(group)) makeGroup(path);
  mkdirSync(cache, { recursive: true });
  const keep = new Set(
    [project, packages, dirname(process.execPath), cache, ...folders].map((folder) => resolve(folder)),
  );
  // The box ends with this process, and everything in the box with it.
  const unshare = ['--pdeathsig', 'KILL', 'unshare', ...namespaces, '--kill-child'];
  // tap adds NODE_OPTIONS to its children, for output into the project, which is read-only in the box.
  const node = ['env', '-u', 'NODE_OPTIONS', process.execPath, fileURLToPath(entry)];
  const child = spawn('setpriv', [...unshare, script, directory, [...keep].join(':'), ...node], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/root',
      KUBE_BIN_DIR: process.env['KUBE_BIN_DIR'] ?? '',
      ...env,
      ARCHWRIGHT_E2E_CACHE: resolve(cache),
      [boxVariable]: group,
      CGROUP: group,
    },
  });
  const takeDown = (): void => {
    child.kill('SIGKILL');
    removeSoon(group);
    if (existsSync(directory)) rmdirSync(directory);
  };
  // Also on a signal, which leaves no time to wait.
  process.once('exit', takeDown);
  for (const signal of signals) process.once(signal, exit);
  try {
    return await follow(child, options);
  } finally {
    process.off('exit', takeDown);
    for (const signal of signals) process.off(signal, exit);
    takeDown();
  }
}

function exit(): void {
  process.exit(1);
}

function follow(
  child: ChildProcessByStdio<null, Readable, Readable>,
  { timeoutMs, onLine }: Pick<BoxOptions, 'timeoutMs' | 'onLine'>,
): Promise<BoxEnd> {
  let stderr = '';
  let rest = '';
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-keptBytes);
  });
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, timedOut, stderr });
    });
  });
}

/** The folder in each hierarchy of version 1, or in the only one of version 2. */
function groupFolders(group: string): string[] {
  if (existsSync(join(cgroups, 'cgroup.controllers'))) return [join(cgroups, group)];
  return readdirSync(cgroups, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(cgroups, name, group));
}

/** A new group of version 1 has no processors and no memory nodes until they are written. */
function makeGroup(path: string): void {
  mkdirSync(path);
  for (const name of ['cpuset.cpus', 'cpuset.mems']) {
    const parent = join(dirname(path), name);
    if (existsSync(parent) && existsSync(join(path, name))) {
      writeFileSync(join(path, name), readFileSync(parent));
    }
  }
}

/** Killed processes leave their groups with a delay. */
function removeSoon(group: string): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (removeGroups(group)) return;
    Atomics.wait(sleeper, 0, 0, 100);
  }
  const left = groupFolders(group).filter((path) => existsSync(path));
  throw new Error(`control groups are left behind: ${left.join(' ')}`);
}

function removeGroups(group: string): boolean {
  return groupFolders(group)
    .filter((path) => existsSync(path))
    .map((path) => removeGroup(path))
    .every(Boolean);
}

/** The innermost groups must go first. The files in them belong to the kernel. */
function removeGroup(path: string): boolean {
  try {
    const inner = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of inner) removeGroup(join(path, name));
    rmdirSync(path);
    return true;
  } catch {
    return !existsSync(path);
  }
}

/** Runs a program with `PROGRAMS` and checks its exit. Fails the test if the machine cannot run a box. */
export async function runInBox(
  t: Test,
  programs: Readonly<Record<string, string>>,
  options: Omit<BoxOptions, 'folders'>,
): Promise<void> {
  const problem = boxProblem();
  if (problem !== undefined) throw new Error(`a box cannot run here: ${problem}`);
  // They may be mounts of their own.
  const folders = Object.values(programs)
    .map((path) => dirname(path))
    .filter((folder) => !/^\/(?:usr|bin|sbin)(?:\/|$)/.test(folder));
  const env = { PROGRAMS: JSON.stringify(programs), ...options.env };
  const end = await runBox({ ...options, folders, env });
  t.equal(end.timedOut, false, 'the box ends in time');
  t.equal(end.code, 0, `the box exits with 0${end.code === 0 ? '' : `: ${end.stderr}`}`);
}
