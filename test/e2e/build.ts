/**
 * Builds Kubernetes, etcd, containerd and kwok where they are missing. None of them need their sources: each is a package of a module
 * that the Go module proxy serves, built from a module of our own that requires it. Kubernetes replaces its staging modules
 * by folders, which a module that requires it has to undo.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache, onPath, say } from './parts.ts';

export type BuiltName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'containerd'
  | 'containerd-shim-runc-v2'
  | 'ctr'
  | 'kwok';

interface Module {
  readonly path: string;
  readonly version: string;
  /** Program → package. */
  readonly packages: Readonly<Partial<Record<BuiltName, string>>>;
  readonly ldflags?: string;
}

export const kubernetes = 'v1.36.3';
const kwok = 'v0.8.0';

/** Where what is built stays; the version of Kubernetes stands for the whole set. */
export const builtPrograms = join(cache, `kubernetes-${kubernetes}`);

const modules: readonly Module[] = [
  {
    path: 'k8s.io/kubernetes',
    version: kubernetes,
    packages: {
      'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
      'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
      'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
      kubelet: 'k8s.io/kubernetes/cmd/kubelet',
      'kube-proxy': 'k8s.io/kubernetes/cmd/kube-proxy',
    },
    ldflags: [
      `-X k8s.io/component-base/version.gitVersion=${kubernetes}`,
      '-X k8s.io/component-base/version.gitMajor=1',
      '-X k8s.io/component-base/version.gitMinor=36',
    ].join(' '),
  },
  {
    path: 'go.etcd.io/etcd/server/v3',
    version: 'v3.7.3',
    packages: { etcd: 'go.etcd.io/etcd/server/v3' },
  },
  {
    path: 'github.com/containerd/containerd/v2',
    version: 'v2.4.2',
    packages: {
      containerd: 'github.com/containerd/containerd/v2/cmd/containerd',
      'containerd-shim-runc-v2': 'github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2',
      ctr: 'github.com/containerd/containerd/v2/cmd/ctr',
    },
  },
  {
    path: 'sigs.k8s.io/kwok',
    version: kwok,
    packages: { kwok: 'sigs.k8s.io/kwok/cmd/kwok' },
    ldflags: `-X sigs.k8s.io/kwok/pkg/consts.Version=${kwok}`,
  },
];

/** An API server takes three minutes on two cores, and its modules may have to be downloaded before. */
const timeoutMs = 15 * 60_000;
const maxOutput = 16 * 1024 * 1024;

/** @returns where each of them is now */
export function buildKubernetes(names: readonly BuiltName[]): Map<BuiltName, string> {
  const built = new Map<BuiltName, string>();
  for (const module of modules) {
    const wanted = names.filter((name) => module.packages[name] !== undefined);
    if (wanted.length === 0) continue;
    if (onPath('go') === undefined) {
      throw new Error(
        `${wanted.join(', ')}: missing, and building ${module.path} needs go; or set KUBE_BIN_DIR`,
      );
    }
    say(`building ${wanted.join(', ')} from ${module.path}@${module.version}, which takes some minutes`);
    const folder = wrapperOf(module);
    for (const name of wanted) {
      const path = join(builtPrograms, name);
      const ldflags = `-s -w ${module.ldflags ?? ''}`;
      go(['build', '-trimpath', '-ldflags', ldflags, '-o', path, module.packages[name] ?? ''], folder);
      built.set(name, path);
    }
    rmSync(folder, { recursive: true });
  }
  return built;
}

/**
 * The rules by which kwok plays a node and its pods: they come with its module.
 * @returns the path of a file with all of them
 */
export function kwokStages(): string {
  const path = join(builtPrograms, 'kwok-stages.yaml');
  if (existsSync(path)) return path;
  if (onPath('go') === undefined) throw new Error('the stages of kwok are in its module, which needs go');
  mkdirSync(builtPrograms, { recursive: true });
  const { Dir } = JSON.parse(go(['mod', 'download', '-json', `sigs.k8s.io/kwok@${kwok}`], builtPrograms)) as {
    Dir: string;
  };
  const texts = ['node/fast', 'node/heartbeat-with-lease', 'pod/fast'].flatMap((folder) => {
    const directory = join(Dir, 'kustomize/stage', folder);
    const names = readdirSync(directory).filter((name) => /^(?:node|pod)-.*\.yaml$/.test(name));
    return names.map((name) => readFileSync(join(directory, name), 'utf8'));
  });
  writeFileSync(path, texts.join('\n---\n'));
  return path;
}

/** A folder with a module that requires this one and imports the programs' packages. */
function wrapperOf({ path, version, packages }: Module): string {
  const folder = join(builtPrograms, `wrapper-${process.pid}`);
  if (existsSync(folder)) rmSync(folder, { recursive: true });
  mkdirSync(folder, { recursive: true });
  const downloaded = JSON.parse(go(['mod', 'download', '-json', `${path}@${version}`], folder)) as {
    GoMod: string;
  };
  const source = readFileSync(downloaded.GoMod, 'utf8');
  const staged = [...source.matchAll(/^\s*(?:replace )?(k8s\.io\/\S+) => \.\/staging\//gm)];
  const staging = version.replace(/^v1/, 'v0');
  writeFileSync(
    join(folder, 'go.mod'),
    [
      'module wrapper',
      /^go .*$/m.exec(source)?.[0] ?? 'go 1.26',
      `require ${path} ${version}`,
      ...staged.map(([, name = '']) => `replace ${name} => ${name} ${staging}`),
      '',
    ].join('\n'),
  );
  const imports = Object.values(packages).map((name) => `import _ "${name}"\n`);
  writeFileSync(join(folder, 'tools.go'), `//go:build tools\n\npackage tools\n\n${imports.join('')}`);
  go(['mod', 'tidy', '-e'], folder);
  return folder;
}

function go(args: readonly string[], cwd: string): string {
  return execFileSync('go', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: timeoutMs,
    maxBuffer: maxOutput,
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=mod' },
  });
}
