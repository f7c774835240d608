/** The node: one containerd, and a kubelet for each setup, because a kubelet reads its files once. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { busyboxTar, tarOf, unpackable, waiting, writeLayout } from '../layout.ts';
import { ready, startProcess, type Running } from '../cluster/control-plane/processes.ts';
import type { Programs } from '../box/programs.ts';

export interface NodeOptions {
  readonly programs: Pick<
    Programs,
    'kubelet' | 'containerd' | 'containerd-shim-runc-v2' | 'ctr' | 'busybox' | 'runc'
  >;
  readonly nodeName: string;
  readonly kubeconfig: string;
  /** Parent of all control groups. */
  readonly cgroup: string;
  readonly caFile: string;
}

export interface KubeletOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Path of the plugins' configuration, file or directory. */
  readonly pluginConfig?: string | undefined;
  readonly binDir: string;
}

export const nodeArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
`;

/** Starts containerd and waits for it. It ends with the box. @param env has paths of its shim and runc */
export async function startContainerd(
  programs: Pick<Programs, 'containerd' | 'ctr'>,
  config: string,
  env: Readonly<Record<string, string>>,
): Promise<{ containerd: Running; ctr: (...args: readonly string[]) => string }> {
  mkdirSync('/etc/containerd', { recursive: true });
  writeFileSync('/etc/containerd/config.toml', config);
  const program = programs.containerd;
  const containerd = startProcess({ name: 'containerd', program, args: [], env, cwd: '/', logs: '/tmp' });
  const ctr = (...args: readonly string[]): string =>
    execFileSync(programs.ctr, ['-n', 'k8s.io', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  await ready(containerd, () => ctr('version').includes('Server:'));
  return { containerd, ctr };
}

/** The same with an image for sandboxes. */
export async function startNodeContainerd({ programs, caFile }: NodeOptions): Promise<void> {
  const shim = dirname(programs['containerd-shim-runc-v2']);
  const path = [shim, dirname(programs.runc), '/usr/sbin:/usr/bin:/sbin:/bin'].join(':');
  const { ctr } = await startContainerd(programs, containerdConfig, { PATH: path, SSL_CERT_FILE: caFile });
  ctr('images', 'import', pauseImage(programs.busybox));
}

/** An image that waits, as an archive for `ctr images import`. */
export function pauseImage(busybox: string): string {
  const image = unpackable(`linux/${nodeArchitecture}`, busyboxTar(busybox), waiting);
  const layout = '/tmp/pause';
  writeLayout(layout, image, { 'io.containerd.image.name': 'localhost/pause:1' });
  writeFileSync(`${layout}.tar`, tarOf(layout));
  return `${layout}.tar`;
}

/** Starts a kubelet. */
export function startKubelet(node: NodeOptions, options: KubeletOptions): Running {
  const config = '/tmp/kubelet.json';
  writeFileSync(config, JSON.stringify(kubeletConfiguration(node.cgroup)));
  const args = [
    `--config=${config}`,
    `--kubeconfig=${node.kubeconfig}`,
    `--hostname-override=${node.nodeName}`,
    '--node-ip=10.99.0.1',
    ...(options.pluginConfig === undefined
      ? []
      : [
          `--image-credential-provider-config=${options.pluginConfig}`,
          `--image-credential-provider-bin-dir=${options.binDir}`,
        ]),
  ];
  const { kubelet: program } = node.programs;
  return startProcess({ name: 'kubelet', program, args, env: options.env, cwd: '/', logs: '/tmp' });
}

export async function kubeletReady(kubelet: Running): Promise<void> {
  await ready(kubelet, async () => (await fetch('http://127.0.0.1:10248/healthz')).ok);
}

/** The configuration of a kubelet that does not change the machine. */
export function kubeletConfiguration(cgroup: string): object {
  const little = { 'memory.available': '10Mi', 'nodefs.available': '1%', 'nodefs.inodesFree': '1%' };
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupRoot: `/${cgroup}`,
    cgroupDriver: 'cgroupfs',
    failCgroupV1: false,
    failSwapOn: false,
    resolvConf: '',
    authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    evictionHard: { ...little, 'imagefs.available': '1%', 'imagefs.inodesFree': '1%' },
    imageGCHighThresholdPercent: 100,
    // A watch may be behind; with `Get` the kubelet reads a Secret when a pod needs it.
    configMapAndSecretChangeDetectionStrategy: 'Get',
    // These limits would only make the run slower.
    registryPullQPS: 0,
    eventRecordQPS: 0,
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    maxPods: 1000,
  };
}
