/**
 * Default paths of containerd's configuration and program. Distributions with a containerd of their own come first: on their nodes,
 * a config.toml in the standard path belongs to a containerd that the kubelet does not use.
 */

interface DefaultPaths {
  readonly config: string;
  /** Programs that may use this configuration, most likely first. */
  readonly programs: readonly string[];
}

const standardPrograms = ['/usr/local/bin/containerd', '/usr/bin/containerd', '/bin/containerd'];

const defaultPaths: readonly DefaultPaths[] = [
  {
    config: '/var/lib/rancher/k3s/agent/etc/containerd/config.toml',
    programs: ['/var/lib/rancher/k3s/data/current/bin/containerd'],
  },
  {
    config: '/var/lib/rancher/rke2/agent/etc/containerd/config.toml',
    programs: ['/var/lib/rancher/rke2/bin/containerd'],
  },
  {
    config: '/var/snap/microk8s/current/args/containerd.toml',
    programs: ['/snap/microk8s/current/bin/containerd'],
  },
  { config: '/etc/k0s/containerd.toml', programs: ['/var/lib/k0s/bin/containerd'] },
  // Talos
  { config: '/etc/cri/containerd.toml', programs: ['/bin/containerd', '/usr/bin/containerd'] },
  // kubeadm, EKS, GKE, AKS, Bottlerocket
  { config: '/etc/containerd/config.toml', programs: standardPrograms },
];

/** The default of `containerdConfigPathCandidates`. */
export const defaultConfigPathCandidates: readonly string[] = defaultPaths.map(({ config }) => config);

/** The programs that may use a configuration. Default: the standard paths. */
export function programsFor(config: string): readonly string[] {
  return defaultPaths.find((paths) => paths.config === config)?.programs ?? standardPrograms;
}
