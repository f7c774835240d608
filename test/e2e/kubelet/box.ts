/**
 * The box: namespaces of its own for processes, mounts and network, in which a control plane and a node can be as they are on a
 * machine without touching this one. Its files are this machine's with changes kept in memory, its network is loopback and
 * a bridge that leads nowhere, and it ends whole with its first process. Outside it only folders for control groups are made,
 * because the kernel has no other place for them; they are removed in the end.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Readable } from 'node:stream';

export interface BoxOptions {
  /** Run inside, as the first process. */
  readonly command: readonly string[];
  /** Folders that the command needs. */
  readonly keep: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Everything is killed after so long. */
  readonly timeoutMs: number;
  readonly onLine: (line: string) => void;
}

export interface BoxEnd {
  readonly code: number | null;
  readonly timedOut: boolean;
  /** The end of what was written to standard error. */
  readonly said: string;
}

const script = fileURLToPath(new URL('box.sh', import.meta.url));
const cgroups = '/sys/fs/cgroup';
const namespaces = [
  '--mount',
  '--net',
  '--pid',
  '--ipc',
  '--uts',
  '--fork',
  '--mount-proc',
  '--propagation=private',
];
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const keptBytes = 16 * 1024;

/** What keeps this machine from having a box, in words; `undefined` where nothing does. */
export function boxProblem(): string | undefined {
  if (process.platform !== 'linux') return 'namespaces of Linux are needed';
  if (process.getuid?.() !== 0) return 'making namespaces, mounts and control groups needs root';
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

/** Runs a command in a box to its end, and takes the box down. The command finds the name of its control group in `CGROUP`. */
export async function runBox(options: BoxOptions): Promise<BoxEnd> {
  const group = `archwright-e2e-${process.pid}`;
  const directory = mkdtempSync(join(tmpdir(), 'archwright-box-'));
  for (const path of groupFolders(group)) makeGroup(path);
  const child = spawn(
    'setpriv',
    // Whatever ends this process ends the box, and the box all that is in it.
    [
      '--pdeathsig',
      'KILL',
      'unshare',
      ...namespaces,
      '--kill-child',
      script,
      directory,
      options.keep.join(':'),
      ...options.command,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...options.env, CGROUP: group } },
  );
  const takeDown = (): void => {
    child.kill('SIGKILL');
    removeSoon(group);
    if (existsSync(directory)) rmdirSync(directory);
  };
  // Also where this process is asked to end, for which there is no time to wait.
  process.once('exit', takeDown);
  for (const signal of signals) process.once(signal, exit);
  try {
    return await watch(child, options);
  } finally {
    process.off('exit', takeDown);
    for (const signal of signals) process.off(signal, exit);
    takeDown();
  }
}

function exit(): void {
  process.exit(1);
}

function watch(child: ChildProcessByStdio<null, Readable, Readable>, options: BoxOptions): Promise<BoxEnd> {
  let said = '';
  let rest = '';
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill('SIGKILL');
  }, options.timeoutMs);
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-keptBytes);
  });
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) options.onLine(line);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, timedOut, said });
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

/** A new group of version 1 may use no processor and no memory until it is told which. */
function makeGroup(path: string): void {
  mkdirSync(path);
  for (const name of ['cpuset.cpus', 'cpuset.mems']) {
    const parent = join(dirname(path), name);
    if (existsSync(parent) && existsSync(join(path, name))) {
      writeFileSync(join(path, name), readFileSync(parent));
    }
  }
}

/** The last processes of the box leave their groups a moment after it was killed. */
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

/** Groups are folders that hold nothing but what the kernel shows in them; the innermost have to go first. */
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
