/**
 * Where distributions keep the configuration and the program of containerd. Those that bring a containerd of their own come first: where
 * one of them is installed, a config.toml in the usual place belongs to a containerd that the kubelet does not use.
 */

export interface ContainerdPlace {
  readonly config: string;
  /** Programs that may be the containerd of this configuration, best first. */
  readonly programs: readonly string[];
}

const usualPrograms = ['/usr/local/bin/containerd', '/usr/bin/containerd', '/bin/containerd'];

const places: readonly ContainerdPlace[] = [
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
  { config: '/etc/containerd/config.toml', programs: usualPrograms },
];

/** Configurations that are looked for where none are named. */
export const defaultConfigPathCandidates: readonly string[] = places.map(({ config }) => config);

/** The programs that a configuration may belong to; of one that is not known, those in the usual places. */
export function programsFor(config: string): readonly string[] {
  return places.find((place) => place.config === config)?.programs ?? usualPrograms;
}
