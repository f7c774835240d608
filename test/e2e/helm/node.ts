/** A real node in the box: containerd, a kubelet with a credential provider plugin, kube-proxy, a network. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Cluster } from '../cluster/harness.ts';
import type { NodeObject } from '../cluster/control-plane/nodes.ts';
import { hasCondition } from '../cluster/control-plane/watch.ts';
import { kubeletConfiguration, pauseImage, startContainerd } from '../kubelet/node.ts';
import { ready, startProcess, type Running } from '../cluster/control-plane/processes.ts';
import { cniPlugins } from '../programs/debian.ts';
import type { Programs } from '../box/programs.ts';

export const nodeName = 'real';
/** Of the bridge that `box.sh` makes. */
export const nodeAddress = '10.99.0.1';

/** Values of the kubelet's flags for credential provider plugins. */
export interface PluginFlags {
  readonly config: string;
  readonly binDir: string;
}

const podNetwork = '10.88.0.0/24';

/** For `/etc/cni/net.d`: a bridge for pods. */
const network = {
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      hairpinMode: true,
      ipam: { type: 'host-local', ranges: [[{ subnet: podNetwork }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
};

const containerdConfig = {
  2: `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["${cniPlugins}"]
`,
  1: `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "${cniPlugins}"
`,
} as const;

export function prepareMachine(): void {
  const run = (program: string, ...args: string[]): void => void execFileSync(program, args);
  // The box mounts itself there for agents outside of containers; here they run in containers.
  run('umount', '-l', '/host');
  rmdirSync('/host');
  // As systemd does. Otherwise pods would not see later mounts.
  run('mount', '--make-rshared', '/');
  // Programs outside of pods reach Services too: the API server its webhooks.
  run('ip', 'route', 'add', '10.96.0.0/16', 'dev', 'node0');
  mkdirSync('/etc/cni/net.d', { recursive: true });
  writeFileSync('/etc/cni/net.d/10-pods.conflist', JSON.stringify(network));
}

export interface RealNodeOptions {
  readonly programs: Programs;
  readonly cluster: Cluster;
  readonly cgroup: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly plugin: PluginFlags;
}

export async function startRealNode(options: RealNodeOptions): Promise<void> {
  const { programs, cluster, cgroup, labels, plugin } = options;
  // Names in the cache differ from those that containerd looks for.
  const bin = '/run/programs';
  mkdirSync(bin);
  for (const name of ['containerd-shim-runc-v2', 'runc'] as const)
    symlinkSync(programs[name], join(bin, name));
  const env = { PATH: [bin, '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(':'), HOME: '/root' };
  const major = / v?1\./.test(execFileSync(programs.containerd, ['--version'], { encoding: 'utf8' })) ? 1 : 2;
  const start = (name: 'kubelet' | 'kube-proxy', args: readonly string[]): Running =>
    startProcess({ name, program: programs[name], args, env, cwd: '/', logs: '/tmp' });
  const { containerd, ctr } = await startContainerd(programs, containerdConfig[major], env);
  const pause = pauseImage(programs.busybox);
  // The CRI plugin ignores images that are imported before it listens.
  await ready(containerd, () => {
    ctr('images', 'import', '--local', pause);
    return ctr('images', 'ls').includes('io.cri-containerd.image=managed');
  });

  const config = '/etc/kubernetes/kubelet.json';
  mkdirSync(dirname(config), { recursive: true });
  writeFileSync(config, JSON.stringify(configuration(cgroup)));
  const { identities, server } = cluster;
  start('kubelet', [
    `--config=${config}`,
    `--kubeconfig=${await identities.kubeconfig({ cn: `system:node:${nodeName}`, group: 'system:nodes' }, server)}`,
    `--hostname-override=${nodeName}`,
    `--node-ip=${nodeAddress}`,
    `--node-labels=${Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',')}`,
    `--image-credential-provider-config=${plugin.config}`,
    `--image-credential-provider-bin-dir=${plugin.binDir}`,
  ]);
  start('kube-proxy', [
    `--kubeconfig=${await identities.kubeconfig({ cn: 'system:kube-proxy' }, server)}`,
    `--hostname-override=${nodeName}`,
    `--cluster-cidr=${podNetwork}`,
    // These are the machine's, not the box's.
    ...['max-per-core', 'min', 'tcp-timeout-established', 'tcp-timeout-close-wait'].map(
      (name) => `--conntrack-${name}=0`,
    ),
  ]);
  const isReady = (node: NodeObject | undefined): boolean => hasCondition(node, 'Ready');
  await cluster.waitFor<NodeObject>(`/api/v1/nodes/${nodeName}`, isReady, 60_000);
}

function configuration(cgroup: string): object {
  return {
    ...kubeletConfiguration(cgroup),
    // Only the API server can reach it.
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    configMapAndSecretChangeDetectionStrategy: 'Watch',
    serializeImagePulls: false,
    maxPods: 110,
  };
}
