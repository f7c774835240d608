/**
 * The environment of the running kubelet, from `/proc` of the node. Any container can name its process `kubelet`, and variables such as
 * `LD_PRELOAD` control a plugin. So only a process of root in the mount namespace of the node's first process counts; a user who can
 * start one controls the node already. Reading it takes CAP_SYS_PTRACE. Without it, or for a kubelet in a container, there is no result.
 */
import { readlink } from 'node:fs/promises';
import { FileError } from '../../../src/files/error.ts';
import { listDirectory, readBounded, statPath } from '../../../src/files/read.ts';
import { resolveInRoot } from '../../../src/files/root.ts';

/** Programs that are or contain a kubelet: Kubernetes, k3s, MicroK8s. */
const programs: ReadonlySet<string> = new Set(['kubelet', 'k3s', 'k3s-server', 'k3s-agent', 'kubelite']);

/** `kernel.pid_max` is 32768 by default, or four million on large machines, where few are in use. */
const maxProcesses = 65_536;
/** The kernel truncates names to 16 bytes. */
const maxNameBytes = 64;
/** The kernel limits one variable to 128 KiB; a kubelet has some dozens of short ones. */
const maxEnvironmentBytes = 1_048_576;

/**
 * @param hostRoot directory that stands for `/`
 * @returns `NAME=value` in order; `undefined` if no kubelet can be read
 */
export async function kubeletVariables(hostRoot: string): Promise<string[] | undefined> {
  try {
    const first = await mountNamespace(hostRoot, '1');
    for (const process of await processes(hostRoot)) {
      const variables = await variablesOf(hostRoot, process, first);
      if (variables !== undefined) return variables;
    }
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  return undefined;
}

/** Process ids, lowest first. */
async function processes(root: string): Promise<string[]> {
  const names = await listDirectory('/proc', { maxEntries: maxProcesses, root });
  return names.filter((name) => /^[0-9]+$/.test(name)).sort((a, b) => Number(a) - Number(b));
}

async function variablesOf(root: string, process: string, first: string): Promise<string[] | undefined> {
  try {
    const name = await readBounded(`/proc/${process}/comm`, { maxBytes: maxNameBytes, root });
    if (!programs.has(name.toString('utf8').trimEnd())) return undefined;
    const owner = await statPath(`/proc/${process}`, root);
    if (owner?.uid !== 0 || (await mountNamespace(root, process)) !== first) return undefined;
    const environ = await readBounded(`/proc/${process}/environ`, { maxBytes: maxEnvironmentBytes, root });
    return environ.toString('utf8').split('\0').filter(Boolean);
  } catch (error) {
    // The process ended, or may not be read.
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

async function mountNamespace(root: string, process: string): Promise<string> {
  return readlink(`${await resolveInRoot(root, `/proc/${process}/ns`)}/mnt`);
}

function isUnreadable(error: unknown): boolean {
  return error instanceof FileError || (error instanceof Error && 'code' in error);
}
