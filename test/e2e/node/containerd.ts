/**
 * A real containerd as a child, in a mount namespace of its own: `/etc`, `/opt`, `/run`, `/var` and `/tmp` are those of a
 * directory, the node, so that configuration files have their usual names, nothing of this machine is read or written,
 * and every mount ends with the process. Name resolution is cut off: `/etc` has no resolver that answers.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectCri, type Cri } from './cri.ts';

/** Directories of the node that stand in for those of this machine. */
const ownDirectories = ['etc', 'opt', 'run', 'var', 'tmp'] as const;

export interface RunningContainerd {
  readonly cri: Cri;
  /** The end of what it logged. */
  log(): string;
  stop(): Promise<void>;
}

/** containerd is ready in half a second; a loaded machine gets more. */
const startTimeoutMs = 20_000;
/** It ends at once on SIGTERM; what does not is killed. */
const stopTimeoutMs = 5_000;
const keptLogBytes = 256 * 1024;

/** Makes the directories of a node, with a resolver that is nobody. */
export function prepareNode(node: string): void {
  for (const name of ownDirectories) mkdirSync(join(node, name), { recursive: true });
  writeFileSync(join(node, 'etc', 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  writeFileSync(join(node, 'etc', 'nsswitch.conf'), 'hosts: files\n');
  writeFileSync(join(node, 'etc', 'hosts'), '127.0.0.1 localhost\n');
}

/**
 * Starts containerd with `/etc/containerd/config.toml` of the node.
 * @throws where it ends or does not answer in time; the message holds what it said
 */
export async function startContainerd(options: {
  readonly program: string;
  readonly node: string;
  readonly env: Readonly<Record<string, string>>;
}): Promise<RunningContainerd> {
  const { program, node } = options;
  const socket = join(node, 'run', 'containerd', 'containerd.sock');
  rmSync(socket, { force: true });
  const binds = ownDirectories.map((name) => `mount --bind "$1/${name}" /${name}`).join(' && ');
  const child = spawn(
    'unshare',
    [
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      `exec 3<"$2" && cd / && ${binds} && exec /proc/self/fd/3`,
      'sh',
      node,
      program,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env['PATH'], ...options.env } },
  );
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-keptLogBytes);
  });
  try {
    const cri = await Promise.race([connectCri(socket, startTimeoutMs), ended(child)]);
    return {
      cri,
      log: () => log,
      stop: async () => {
        cri.close();
        await end(child);
      },
    };
  } catch (error) {
    await end(child);
    throw new Error(`containerd did not start: ${log.slice(-4096)}`, { cause: error });
  }
}

function ended(child: ChildProcess): Promise<never> {
  return new Promise((_resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`containerd ended with ${code}`)));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await over;
  clearTimeout(timer);
}
