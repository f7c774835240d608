/**
 * The variables of a plugin: those of the kubelet, then the configured ones (kubernetes
 * pkg/credentialprovider/plugin/plugin.go `mergeEnvVars`). The agent's own environment is not passed on: it
 * has the variables of a pod and of Node.
 */
import { readlink } from 'node:fs/promises';
import {
  errnoOf,
  FileError,
  listDirectory,
  readBounded,
  statPath,
  resolveInRoot,
} from '../../../src/files/read.ts';
import type { Problem } from '../../../src/credentials/credential.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { readServiceEnvironment } from '../../systemd/service-environment.ts';
import type { ProviderConfig } from '../config/provider-config.ts';

export type Environment = Readonly<Record<string, string>>;

/** The minimal environment of a systemd service, used if the kubelet's environment cannot be read. */
export const baseEnvironment: Environment = {
  HOME: '/root',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

/** The services that run or contain a program, those of distributions first. @param part of MicroK8s */
export function servicesOf(program: string, part: string): readonly string[] {
  const k3s = ['k3s', 'k3s-agent', 'rke2-server', 'rke2-agent'];
  const names = [...k3s, `snap.microk8s.daemon-${part}`, 'k0scontroller', 'k0sworker', program];
  return names.map((name) => `${name}.service`);
}

const kubeletServices = servicesOf('kubelet', 'kubelite');

/** The kubelet as it runs, or as its service would start it. */
export function kubeletProgram(hostRoot: string): Promise<NodeProgram> {
  return nodeProgram(hostRoot, kubeletPrograms, kubeletServices);
}

/**
 * The variables of a plugin.
 * @param system those of the kubelet
 * @param extra the setting `kubeletEnvironment`
 * @param configured for this plugin; the last value of a name counts
 */
export function pluginEnvironment(
  system: Environment,
  extra: Environment = {},
  configured: ProviderConfig['env'] = [],
): Environment {
  const own = configured.map(({ name, value }) => [name, value] as const);
  return withSecrets([...Object.entries(system), ...Object.entries(extra), ...own]);
}

/** Values of such variables are scrubbed from the standard error of plugins. */
const secretName = /secret|token|passw|credential|api_?key|private/i;

function withSecrets(variables: Iterable<readonly [string, string]>): Environment {
  const found = new Map(variables);
  for (const [name, value] of found) if (secretName.test(name)) secret(value);
  return Object.fromEntries(found);
}

/** Programs that are or contain a kubelet: Kubernetes, k3s, MicroK8s. */
const kubeletPrograms = new Set(['kubelet', 'k3s', 'k3s-server', 'k3s-agent', 'kubelite']);

/** `kernel.pid_max` is 32768 by default, or four million on large machines, where few are in use. */
const maxProcesses = 65_536;
/** The kernel truncates names to 16 bytes. */
const maxNameBytes = 64;
/** The kernel limits one variable to 128 KiB; a kubelet has some dozens of short ones. */
const maxEnvironmentBytes = 1_048_576;

export interface RunningProcess {
  readonly args: readonly string[];
  readonly variables: Environment;
}

export interface NodeProgram extends RunningProcess {
  readonly isRunning: boolean;
  /** The service of a program that does not run, or that may not be read. */
  readonly service: string | undefined;
  readonly problems: readonly Problem[];
}

/** A program of the node: as it runs, else as the first of its services would start it. */
export async function nodeProgram(
  hostRoot: string,
  programs: ReadonlySet<string>,
  services: readonly string[],
): Promise<NodeProgram> {
  const running = await runningProcess(hostRoot, programs);
  if (running) return { ...running, isRunning: true, service: undefined, problems: [] };
  const found = await readServiceEnvironment(hostRoot, services);
  const { service, command: args = [], problems = [] } = found ?? {};
  const variables = withSecrets([...Object.entries(baseEnvironment), ...(found?.variables ?? [])]);
  return { args, variables, isRunning: false, service, problems };
}

/**
 * A running program of the node, from `/proc`. Any container can name its process `kubelet`, and variables such
 * as `LD_PRELOAD` control a plugin. So only a process of root in the mount namespace of the node's first process
 * counts; a user who can start one controls the node already. Reading it takes CAP_SYS_PTRACE. Without it, or
 * for a program in a container, there is no result.
 * @returns `undefined` if no process can be read
 */
export async function runningProcess(
  hostRoot: string,
  programs: ReadonlySet<string>,
): Promise<RunningProcess | undefined> {
  try {
    const first = await mountNamespace(hostRoot, '1');
    const names = await listDirectory('/proc', { maxEntries: maxProcesses, root: hostRoot });
    const processes = names.filter((name) => /^[0-9]+$/.test(name)).sort((a, b) => Number(a) - Number(b));
    for (const process of processes) {
      const found = await readProcess(hostRoot, process, { programs, first });
      if (found !== undefined) return found;
    }
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  return undefined;
}

async function readProcess(
  root: string,
  process: string,
  { programs, first }: { readonly programs: ReadonlySet<string>; readonly first: string },
): Promise<RunningProcess | undefined> {
  const words = async (file: string): Promise<readonly string[]> => {
    const text = await readBounded(`/proc/${process}/${file}`, { maxBytes: maxEnvironmentBytes, root });
    return text.toString('utf8').split('\0');
  };
  try {
    const name = await readBounded(`/proc/${process}/comm`, { maxBytes: maxNameBytes, root });
    if (!programs.has(name.toString('utf8').trimEnd())) return undefined;
    const owner = await statPath(`/proc/${process}`, root);
    if (owner?.uid !== 0 || (await mountNamespace(root, process)) !== first) return undefined;
    const args = (await words('cmdline')).slice(0, -1);
    return { args, variables: withSecrets((await words('environ')).flatMap(variableOf)) };
  } catch (error) {
    // The process ended, or may not be read.
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

/** As in Go, a name may begin with `=`. A text without another `=` is not a variable. */
function variableOf(text: string): (readonly [string, string])[] {
  const equals = text.indexOf('=', 1);
  return equals > 0 ? [[text.slice(0, equals), text.slice(equals + 1)]] : [];
}

async function mountNamespace(root: string, process: string): Promise<string> {
  return readlink(`${await resolveInRoot(root, `/proc/${process}/ns`)}/mnt`);
}

function isUnreadable(error: unknown): boolean {
  return error instanceof FileError || errnoOf(error) !== undefined;
}
