/**
 * A real containerd as a child process in its own mount namespace. `/etc`, `/opt`, `/run`, `/var` and `/tmp`
 * are folders of the node's directory: files have their usual names, this machine's are not touched, and
 * every mount ends with the process. The resolver in `/etc` does not answer, so no name is resolved.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProcess } from '../cluster/control-plane/processes.ts';
import { connectCri } from './cri.ts';

/** Directories of the node that replace those of this machine. */
const ownDirectories = ['etc', 'opt', 'run', 'var', 'tmp'] as const;

export type RunningContainerd = Awaited<ReturnType<typeof startContainerd>>;

/** containerd is ready in half a second; a loaded machine needs more. */
const startTimeoutMs = 20_000;
/** containerd ends at once on SIGTERM. */
const stopTimeoutMs = 5_000;

/** Makes the directories of a node, with a resolver that does not answer. */
export function prepareNode(node: string): void {
  for (const name of ownDirectories) mkdirSync(join(node, name), { recursive: true });
  writeFileSync(join(node, 'etc', 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  writeFileSync(join(node, 'etc', 'nsswitch.conf'), 'hosts: files\n');
  writeFileSync(join(node, 'etc', 'hosts'), '127.0.0.1 localhost\n');
}

/**
 * Starts containerd with `/etc/containerd/config.toml` of the node.
 * @throws Error if it ends or does not answer in time; the message has the end of its log
 */
export async function startContainerd(options: {
  readonly program: string;
  readonly node: string;
  readonly env: Readonly<Record<string, string>>;
}) {
  const { program, node } = options;
  const socket = join(node, 'run', 'containerd', 'containerd.sock');
  rmSync(socket, { force: true });
  const binds = ownDirectories.map((name) => `mount --bind "$1/${name}" /${name}`).join(' && ');
  const mountNamespace = ['--mount', '--propagation', 'private'];
  const script = `exec 3<"$2" && cd / && ${binds} && exec /proc/self/fd/3`;
  const running = startProcess({
    name: 'containerd',
    program: 'unshare',
    args: [...mountNamespace, 'sh', '-c', script, 'sh', node, program],
    env: { PATH: process.env['PATH'] ?? '', ...options.env },
    logs: node,
  });
  try {
    const ended = running.ended.then((how) => Promise.reject(new Error(`containerd ended with ${how}`)));
    const cri = await Promise.race([connectCri(socket, startTimeoutMs), ended]);
    ended.catch(() => undefined);
    return {
      cri,
      stop: async (): Promise<void> => {
        cri.close();
        await running.stop(stopTimeoutMs);
      },
    };
  } catch (error) {
    await running.stop(stopTimeoutMs);
    throw new Error(`containerd did not start: ${running.log().slice(-4096)}`, { cause: error });
  }
}
