/**
 * Which version of containerd a node has, by its configuration and its program, and what differs between
 * versions (from the sources of 1.6.20, 1.7.24, 2.0.5, 2.1.4 and 2.4.2).
 */
import type { VersionedProgram } from '../../node-programs.ts';

export type ContainerdRules = Readonly<ReturnType<typeof rulesFor>>;

/** @param version such as `2.1.4`, `v1.7.24` or `1.6.20~ds1`. Default and fallback: the newest */
export function rulesFor(version?: string) {
  const known = rank(parseVersion(version ?? '') ?? [Infinity]);
  const from = (...wanted: readonly number[]): boolean => known >= rank(wanted);
  return {
    /** Newest supported `version` of config.toml; older files are migrated to it. */
    configVersion: from(2, 3) ? 4 : from(2) ? 3 : 2,
    /** Older files are migrated. Before, version 1 has short plugin names; nothing else differs. */
    migrates: from(2),
    /**
     * Each file is migrated before it is merged. Before, the merged files are migrated together, and a file
     * of version 1 counts as migrated once its plugins have their full names: its settings of the old CRI
     * plugin are lost.
     */
    migratesEachFile: from(2, 3),
    /** containerd does not start with a file of a newer version. 1.6 reads it as version 2. */
    refusesNewerFiles: from(1, 7),
    /** Tables of imported files are merged. Before, the table of a plugin replaces an earlier one. */
    mergesPlugins: from(2),
    /** A relative pattern of `imports` starts at the importing file; in 1.6, at the working directory. */
    relativeGlobs: from(1, 7),
    /** `configs."<host>".tls`. */
    tlsTables: !from(2),
    /** The transfer service pulls images unless a setting excludes it. */
    transferService: from(2, 1),
    /** `config_path` has a default if mirrors are not set. */
    defaultConfigPath: from(2, 2),
    /** Hosts have the order of their table headers. Before, every key of `host` counts, inline tables too. */
    hostsByHeader: from(2),
    /** A hosts.toml without hosts is valid. */
    hostsOptional: from(1, 7, 32),
    referrers: from(2, 2),
    dialTimeout: from(2, 1),
    /** A host with `http://` and TLS settings is tried by https first, then by http. */
    httpFallback: from(1, 7),
    /** Headers of a host are also sent to its token server. */
    tokenHeaders: from(2, 1),
  };
}

/** The numbers at the beginning of a text. */
export function parseVersion(text: string): readonly number[] | undefined {
  const [, major, minor, patch = '0'] = /^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?/.exec(text) ?? [];
  return major === undefined ? undefined : [major, minor, patch].map(Number);
}

function rank([major = 0, minor = 0, patch = 0]: readonly number[]): number {
  return (major * 10_000 + minor) * 1_000_000 + patch;
}

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
