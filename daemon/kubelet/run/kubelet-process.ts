/**
 * The environment of the running kubelet, from `/proc` of the node. Any container of the node can name a process of its own
 * `kubelet`, and variables such as `LD_PRELOAD` decide what a plugin does, so only a process of root in the mount namespace of
 * the node's first process counts: whoever can start one of those rules the node anyway. Reading all this takes the right to
 * trace processes (CAP_SYS_PTRACE); without it, or where the kubelet runs in a container, nothing is found.
 */
import { readlink, stat } from 'node:fs/promises';
import { FileError, listDirectory, readBounded } from '../../../src/files/read.ts';
import { resolveInRoot } from '../../../src/files/root.ts';

/** Programs that are a kubelet or have one in them: Kubernetes itself, k3s, MicroK8s. */
const programs: ReadonlySet<string> = new Set(['kubelet', 'k3s', 'k3s-server', 'k3s-agent', 'kubelite']);

/** The default of `kernel.pid_max` is 32768 or, on large machines, four million, of which few are in use. */
const maxProcesses = 65_536;
/** The kernel cuts names after 16 bytes. */
const maxNameBytes = 64;
/** The kernel's limit of one argument or variable is 128 KiB; a kubelet has some dozens of short ones. */
const maxEnvironmentBytes = 1_048_576;

/**
 * @param hostRoot directory that stands for `/`
 * @returns `NAME=value` in their order, or `undefined` where there is no kubelet to be read
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

/** Numbers of processes, lowest first. */
async function processes(root: string): Promise<string[]> {
  const names = await listDirectory('/proc', { maxEntries: maxProcesses, root });
  return names.filter((name) => /^[0-9]+$/.test(name)).sort((a, b) => Number(a) - Number(b));
}

async function variablesOf(root: string, process: string, first: string): Promise<string[] | undefined> {
  try {
    const name = await readBounded(`/proc/${process}/comm`, { maxBytes: maxNameBytes, root });
    if (!programs.has(name.toString('utf8').trimEnd())) return undefined;
    const { uid } = await stat(await resolveInRoot(root, `/proc/${process}`));
    if (uid !== 0 || (await mountNamespace(root, process)) !== first) return undefined;
    const environ = await readBounded(`/proc/${process}/environ`, { maxBytes: maxEnvironmentBytes, root });
    return environ.toString('utf8').split('\0').filter(Boolean);
  } catch (error) {
    // Gone since, or not ours to look at.
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
