/** The node: a real containerd for the whole run, and a real kubelet that is started anew for each setup, because it reads its files once. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { document, manifest, mediaTypes } from '../../support/registry/content.ts';
import { tarOf } from './images.ts';
import { ready, startProcess, type Running } from '../cluster/processes.ts';
import type { Programs } from './programs.ts';

export interface NodeOptions {
  readonly programs: Programs;
  readonly nodeName: string;
  readonly kubeconfig: string;
  /** Control group that holds all others. */
  readonly cgroup: string;
  /** Certificates that containerd trusts. */
  readonly caFile: string;
}

export interface KubeletOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Path of the plugins' configuration, file or directory. */
  readonly pluginConfig?: string | undefined;
  readonly binDir: string;
}

const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
`;

/** Starts containerd, with an image for sandboxes in it. It ends with the box. */
export async function startContainerd({ programs, caFile }: NodeOptions): Promise<void> {
  mkdirSync('/etc/containerd', { recursive: true });
  writeFileSync('/etc/containerd/config.toml', containerdConfig);
  const env = {
    PATH: [
      dirname(programs['containerd-shim-runc-v2']),
      dirname(programs.runc),
      '/usr/sbin:/usr/bin:/sbin:/bin',
    ].join(':'),
    SSL_CERT_FILE: caFile,
  };
  const containerd = startProcess({
    name: 'containerd',
    program: programs.containerd,
    args: [],
    env,
    logs: '/tmp',
  });
  const ctr = (...args: string[]): string =>
    execFileSync(programs.ctr, ['-n', 'k8s.io', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  await ready(containerd, () => ctr('version').includes('Server:'));
  ctr('images', 'import', pauseImage(programs.busybox));
}

/** An image of one static program that waits, as an archive for `ctr images import`. */
export function pauseImage(busybox: string): string {
  const root = '/tmp/pause';
  mkdirSync(join(root, 'rootfs'), { recursive: true });
  copyFileSync(busybox, join(root, 'rootfs', 'busybox'));
  const bytes = tarOf(join(root, 'rootfs'));
  const layer = document('application/vnd.oci.image.layer.v1.tar', bytes);
  const config = document(mediaTypes.ociConfig, {
    os: 'linux',
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    config: { Entrypoint: ['/busybox', 'sleep', '100000'] },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  });
  const top = manifest(config, [layer]);
  const layout = join(root, 'layout');
  mkdirSync(join(layout, 'blobs', 'sha256'), { recursive: true });
  for (const { digest, bytes } of [top, config, layer]) {
    writeFileSync(join(layout, 'blobs', digest.replace(':', '/')), bytes);
  }
  const { mediaType, digest } = top;
  const annotations = { 'io.containerd.image.name': 'localhost/pause:1' };
  const index = { schemaVersion: 2, manifests: [{ mediaType, digest, size: top.bytes.length, annotations }] };
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  const archive = '/tmp/pause.tar';
  writeFileSync(archive, tarOf(layout));
  return archive;
}

/** Starts a kubelet; `ready` tells whether it has come up, which one with a bad configuration never does. */
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

/** Whether the kubelet watches for pods: its own health endpoint answers. */
export async function kubeletReady(kubelet: Running): Promise<void> {
  await ready(kubelet, async () => (await fetch('http://127.0.0.1:10248/healthz')).ok);
}

/** The configuration file of a kubelet that leaves the machine alone. */
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
    // Secrets are got when a pod needs them, not from a watch that may be behind.
    configMapAndSecretChangeDetectionStrategy: 'Get',
    // One pull after the other is the default; these limits would only make the run slower.
    registryPullQPS: 0,
    eventRecordQPS: 0,
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    maxPods: 1000,
  };
}
