/**
 * Builds Kubernetes, etcd, containerd and kwok where they are missing. None of them need their sources: each is a package of a module
 * that the Go module proxy serves, built from a module of our own that requires it. Kubernetes replaces its staging modules
 * by folders, which a module that requires it has to undo. Of what has packages but no program there, cert-manager, the program is ours.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cache, onPath, say } from './parts.ts';

export type BuiltName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'kubectl'
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
/** The oldest that the chart takes, by its last patch; only its API server is ever built. */
export const oldestKubernetes = 'v1.30.14';
const kwok = 'v0.8.0';
export const certManager = { path: 'github.com/cert-manager/cert-manager', version: 'v1.21.2' } as const;

/** Where what is built stays; the version of Kubernetes stands for the whole set. */
export const builtPrograms = folderOf(kubernetes);

const modules: readonly Module[] = [
  kubernetesModule(kubernetes, [
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'kubelet',
    'kube-proxy',
    'kubectl',
  ]),
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

/** An API server takes three minutes on two cores, or many times that beside other work; its modules may have to be downloaded before. */
const timeoutMs = 40 * 60_000;
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
    for (const [name, path] of buildInto(builtPrograms, module, wanted)) built.set(name, path);
  }
  return built;
}

/**
 * The API server of another version of Kubernetes, with a folder of its own.
 * @returns where it is
 */
export function buildApiServer(version: string): string {
  const folder = folderOf(version);
  const path = join(folder, 'kube-apiserver');
  if (existsSync(path)) return path;
  if (onPath('go') === undefined)
    throw new Error(`building the API server of Kubernetes ${version} needs go`);
  buildInto(folder, kubernetesModule(version, ['kube-apiserver']), ['kube-apiserver']);
  return path;
}

/**
 * Builds a program of ours from the packages of a module.
 * @param source the text of its `main.go`
 * @param output where it is put, whole or not at all
 * @throws where there is no go, or it says no
 */
export function buildProgram(
  { path, version }: Pick<Module, 'path' | 'version'>,
  source: string,
  output: string,
): void {
  if (onPath('go') === undefined) throw new Error(`building what needs ${path} needs go`);
  say(`building ${basename(output)} from ${path}@${version}, which takes some minutes`);
  const wrapper = wrapperOf({ path, version }, dirname(output), { 'main.go': source });
  const half = join(wrapper, 'program');
  go(['build', '-trimpath', '-ldflags', '-s -w', '-o', half, '.'], wrapper);
  renameSync(half, output);
  rmSync(wrapper, { recursive: true });
}

function folderOf(version: string): string {
  return join(cache, `kubernetes-${version}`);
}

/** @param version `v1.36.3` */
function kubernetesModule(version: string, names: readonly BuiltName[]): Module {
  return {
    path: 'k8s.io/kubernetes',
    version,
    packages: Object.fromEntries(names.map((name) => [name, `k8s.io/kubernetes/cmd/${name}`])),
    ldflags: [
      `-X k8s.io/component-base/version.gitVersion=${version}`,
      '-X k8s.io/component-base/version.gitMajor=1',
      `-X k8s.io/component-base/version.gitMinor=${version.split('.')[1] ?? ''}`,
    ].join(' '),
  };
}

/** @returns where each program is now */
function buildInto(folder: string, module: Module, names: readonly BuiltName[]): Map<BuiltName, string> {
  say(`building ${names.join(', ')} from ${module.path}@${module.version}, which takes some minutes`);
  const imports = Object.values(module.packages).map((name) => `import _ "${name}"\n`);
  const wrapper = wrapperOf(module, folder, {
    'tools.go': `//go:build tools\n\npackage tools\n\n${imports.join('')}`,
  });
  const built = new Map<BuiltName, string>();
  for (const name of names) {
    const path = join(folder, name);
    const ldflags = `-s -w ${module.ldflags ?? ''}`;
    go(['build', '-trimpath', '-ldflags', ldflags, '-o', path, module.packages[name] ?? ''], wrapper);
    built.set(name, path);
  }
  rmSync(wrapper, { recursive: true });
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
  const { Dir } = download('sigs.k8s.io/kwok', kwok, builtPrograms);
  const texts = ['node/fast', 'node/heartbeat-with-lease', 'pod/fast'].flatMap((folder) => {
    const directory = join(Dir, 'kustomize/stage', folder);
    const names = readdirSync(directory).filter((name) => /^(?:node|pod)-.*\.yaml$/.test(name));
    return names.map((name) => readFileSync(join(directory, name), 'utf8'));
  });
  writeFileSync(path, texts.join('\n---\n'));
  return path;
}

/** A folder with a module that requires this one, and has these files. */
function wrapperOf(
  { path, version }: Pick<Module, 'path' | 'version'>,
  inside: string,
  files: Readonly<Record<string, string>>,
): string {
  const folder = join(inside, `wrapper-${process.pid}`);
  if (existsSync(folder)) rmSync(folder, { recursive: true });
  mkdirSync(folder, { recursive: true });
  const { GoMod } = download(path, version, folder);
  const source = readFileSync(GoMod, 'utf8');
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
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  go(['mod', 'tidy', '-e'], folder);
  return folder;
}

interface Downloaded {
  /** Folder with its files. */
  readonly Dir: string;
  readonly GoMod: string;
}

/** Has the proxy's files of a module. */
export function download(path: string, version: string, cwd: string): Downloaded {
  return JSON.parse(go(['mod', 'download', '-json', `${path}@${version}`], cwd)) as Downloaded;
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
