/**
 * The default paths of containerd's configuration and program, and its version: `containerd --version`, run
 * in the node's root with a time limit. The version cannot be read from the file: Go stores it among a
 * hundred thousand other strings without terminators.
 */
import { basename, dirname } from 'node:path';
import type { Problem } from '../../../src/credentials/credential.ts';
import { statPath } from '../../../src/files/read.ts';
import { checkBinary } from '../../kubelet/run/binary.ts';
import { baseEnvironment, environmentObject } from '../../kubelet/run/environment.ts';
import { PluginError } from '../../kubelet/run/plugin-error.ts';
import { hostCommand, runProgram, type RunLimits } from '../../kubelet/run/run.ts';
import { parseVersion } from './rules.ts';

/** The command only prints one line, but reading the program from a busy disk may take seconds. */
const limits: RunLimits = { timeoutMs: 10_000, maxStdoutBytes: 4096, maxStderrBytes: 4096, drainMs: 500 };

const standardPrograms = ['/usr/local/bin/containerd', '/usr/bin/containerd', '/bin/containerd'];

/**
 * Programs by configuration, most likely first. Distributions with a containerd of their own come first: on
 * their nodes, a config.toml in the standard path belongs to a containerd that the kubelet does not use.
 */
const defaultPaths: ReadonlyMap<string, readonly string[]> = new Map([
  [
    '/var/lib/rancher/k3s/agent/etc/containerd/config.toml',
    ['/var/lib/rancher/k3s/data/current/bin/containerd'],
  ],
  ['/var/lib/rancher/rke2/agent/etc/containerd/config.toml', ['/var/lib/rancher/rke2/bin/containerd']],
  ['/var/snap/microk8s/current/args/containerd.toml', ['/snap/microk8s/current/bin/containerd']],
  ['/etc/k0s/containerd.toml', ['/var/lib/k0s/bin/containerd']],
  // Talos
  ['/etc/cri/containerd.toml', ['/bin/containerd', '/usr/bin/containerd']],
  // kubeadm, EKS, GKE, AKS, Bottlerocket
  ['/etc/containerd/config.toml', standardPrograms],
]);

/** The default of `containerdConfigPathCandidates`. */
export const defaultConfigPathCandidates: readonly string[] = [...defaultPaths.keys()];

/** The programs that may use a configuration. Default: the standard paths. */
export function programsFor(config: string): readonly string[] {
  return defaultPaths.get(config) ?? standardPrograms;
}

export interface FoundVersion {
  readonly version?: string;
  /** Why the version of an existing program is unknown. */
  readonly problem?: Problem;
}

export type VersionFinder = (programs: readonly string[]) => Promise<FoundVersion>;

/** A program runs once, and again after it was replaced. @param stop kills a running program */
export function createVersionFinder(hostRoot: string, stop: AbortSignal): VersionFinder {
  let last: { readonly identity: string; readonly found: FoundVersion } | undefined;
  return async (programs) => {
    for (const program of programs) {
      const stats = await statPath(program, hostRoot).catch(() => undefined);
      if (stats === undefined) continue;
      const identity = [program, stats.dev, stats.ino, stats.size, stats.mtimeMs].join(' ');
      if (last?.identity !== identity) last = { identity, found: await runVersion(program, hostRoot, stop) };
      return last.found;
    }
    return {};
  };
}

async function runVersion(program: string, hostRoot: string, stop: AbortSignal): Promise<FoundVersion> {
  try {
    const path = await checkBinary(basename(program), { hostRoot, binDir: dirname(program) });
    const command = hostCommand(hostRoot, path, ['--version']);
    const env = environmentObject(baseEnvironment);
    const output = await runProgram({ plugin: 'containerd', command, env, stdin: '', limits }, stop);
    // `containerd github.com/containerd/containerd/v2 v2.1.4 <revision>`
    const version = /^containerd \S+ (\S+)/m.exec(output.toString('utf8'))?.[1];
    if (version !== undefined && parseVersion(version) !== undefined) return { version };
    return { problem: { origin: program, message: 'its version cannot be read; set containerdVersion' } };
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    return { problem: { origin: program, message: `${error.message}; set containerdVersion` } };
  }
}
