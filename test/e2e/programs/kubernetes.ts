/** Kubernetes, etcd, containerd and kwok: found, else built into one folder of the cache. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache, installed } from './cache.ts';
import { buildPackages, downloadModule, type GoModule } from './go.ts';

export const kubernetes = 'v1.36.3';
/** The oldest version that the chart supports, at its last patch. Only its API server is ever built. */
export const oldestKubernetes = 'v1.30.14';
const kwok = { path: 'sigs.k8s.io/kwok', version: 'v0.8.0' } as const;

/** Named by the version of Kubernetes, for the whole set. */
export const kubernetesFolder = folderOf(kubernetes);

const containerd = 'github.com/containerd/containerd/v2';
const modules = {
  kubernetes: kubernetesModule(kubernetes),
  etcd: { path: 'go.etcd.io/etcd/server/v3', version: 'v3.7.3' },
  containerd: { path: containerd, version: 'v2.4.2' },
  kwok: {
    ...kwok,
    ldflags: `-X sigs.k8s.io/kwok/pkg/consts.Version=${kwok.version}`,
    dependenciesOf: kubernetesModule(kubernetes),
  },
} as const satisfies Record<string, GoModule>;

const packages = {
  'kube-apiserver': ['kubernetes', 'k8s.io/kubernetes/cmd/kube-apiserver'],
  'kube-controller-manager': ['kubernetes', 'k8s.io/kubernetes/cmd/kube-controller-manager'],
  'kube-scheduler': ['kubernetes', 'k8s.io/kubernetes/cmd/kube-scheduler'],
  kubelet: ['kubernetes', 'k8s.io/kubernetes/cmd/kubelet'],
  'kube-proxy': ['kubernetes', 'k8s.io/kubernetes/cmd/kube-proxy'],
  kubectl: ['kubernetes', 'k8s.io/kubernetes/cmd/kubectl'],
  etcd: ['etcd', 'go.etcd.io/etcd/server/v3'],
  containerd: ['containerd', `${containerd}/cmd/containerd`],
  'containerd-shim-runc-v2': ['containerd', `${containerd}/cmd/containerd-shim-runc-v2`],
  ctr: ['containerd', `${containerd}/cmd/ctr`],
  kwok: ['kwok', 'sigs.k8s.io/kwok/cmd/kwok'],
} as const satisfies Record<string, readonly [keyof typeof modules, string]>;

export type KubernetesProgram = keyof typeof packages;
export const kubernetesProgramNames = Object.keys(packages) as readonly KubernetesProgram[];

/** The path of each program. @throws Error if one can neither be found nor built */
export function kubernetesPrograms<N extends KubernetesProgram>(
  names: readonly N[],
): Readonly<Record<N, string>> {
  const found = new Map<KubernetesProgram, string>();
  for (const name of names) {
    const path = candidates(name).find((each) => isNewEnough(name, each));
    if (path !== undefined) found.set(name, path);
  }
  const missing = names.filter((name) => !found.has(name));
  for (const [module, programs] of Map.groupBy(missing, (name) => packages[name][0])) {
    buildPackages(
      modules[module],
      Object.fromEntries(programs.map((name) => [packages[name][1], join(kubernetesFolder, name)])),
    );
    for (const name of programs) found.set(name, join(kubernetesFolder, name));
  }
  return Object.fromEntries(found) as Record<N, string>;
}

/** The API server of a version such as `v1.30.14`. */
export function apiServerProgram(version: string): string {
  if (version === kubernetes) return kubernetesPrograms(['kube-apiserver'])['kube-apiserver'];
  const path = join(folderOf(version), 'kube-apiserver');
  const found = [...installed('kube-apiserver').filter((each) => each.includes(`/${version}/`)), path];
  const first = found.find((each) => existsSync(each));
  if (first !== undefined) return first;
  buildPackages(kubernetesModule(version), { [packages['kube-apiserver'][1]]: path });
  return path;
}

/** The file of stages with which kwok simulates nodes and pods. They come with its module. */
export function kwokStages(): string {
  const [found] = candidates('kwok-stages.yaml');
  if (found !== undefined) return found;
  const path = join(kubernetesFolder, 'kwok-stages.yaml');
  mkdirSync(kubernetesFolder, { recursive: true });
  const { Dir } = downloadModule(kwok, kubernetesFolder);
  const texts = ['node/fast', 'node/heartbeat-with-lease', 'pod/fast'].flatMap((folder) => {
    const directory = join(Dir, 'kustomize/stage', folder);
    const names = readdirSync(directory).filter((name) => /^(?:node|pod)-.*\.yaml$/.test(name));
    return names.map((name) => readFileSync(join(directory, name), 'utf8'));
  });
  writeFileSync(`${path}.${process.pid}`, texts.join('\n---\n'));
  renameSync(`${path}.${process.pid}`, path);
  return path;
}

function candidates(name: string): readonly string[] {
  return [...installed(name), join(kubernetesFolder, name)].filter((path) => existsSync(path));
}

function folderOf(version: string): string {
  return join(cache, `kubernetes-${version}`);
}

export function kubernetesModule(version: string): GoModule {
  const stamp = { gitVersion: version, gitMajor: '1', gitMinor: version.split('.')[1] ?? '' };
  const ldflags = Object.entries(stamp).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  );
  return { path: 'k8s.io/kubernetes', version, ldflags: ldflags.join(' ') };
}

/** Debian 12's etcd 3.4 is too old for the API server, containerd 1 for the configuration of these tests. */
function isNewEnough(name: KubernetesProgram, path: string): boolean {
  if (name !== 'etcd' && name !== 'containerd' && name !== 'ctr') return true;
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' });
  return name === 'etcd' ? !/ 3\.[0-4]\./.test(version) : / v?2\./.test(version);
}
