/** The default paths of containerd's configuration and program. */
import type { VersionedProgram } from '../../program-version.ts';
import { parseVersion } from './rules.ts';

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

export const containerdProgram: VersionedProgram = {
  // `containerd github.com/containerd/containerd/v2 v2.1.4 <revision>`
  versionIn: (output) => {
    const version = /^containerd \S+ (\S+)/m.exec(output)?.[1];
    return version !== undefined && parseVersion(version) !== undefined ? version : undefined;
  },
  remedy: 'set containerdVersion',
};
