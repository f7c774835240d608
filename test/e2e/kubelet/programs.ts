/**
 * The programs of the box: Kubernetes and containerd are found in `KUBE_BIN_DIR`, on the PATH or in the usual cache, else built
 * through the Go module proxy into the cache of these tests, which takes some ten minutes; runc and a static busybox are
 * Debian's.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { onPath, part } from '../parts.ts';
import { buildKubernetes, builtPrograms, type BuiltName } from './build.ts';

const names = ['etcd', 'kube-apiserver', 'kubelet', 'containerd', 'containerd-shim-runc-v2', 'ctr'] as const;

export type Programs = Readonly<Record<BuiltName | 'busybox' | 'runc', string>> & {
  /** Holds containerd's shim, which it looks for on its PATH. */
  readonly directory: string;
};

/**
 * @throws where one cannot be had; the message says which
 */
export function findPrograms(): Programs {
  const found = new Map<BuiltName, string>();
  for (const name of names) {
    const path = find(name);
    if (path !== undefined) found.set(name, path);
  }
  const missing = names.filter((name) => !found.has(name));
  for (const [name, path] of buildKubernetes(missing)) found.set(name, path);
  const path = (name: BuiltName): string => found.get(name) ?? '';
  return {
    etcd: path('etcd'),
    'kube-apiserver': path('kube-apiserver'),
    kubelet: path('kubelet'),
    containerd: path('containerd'),
    'containerd-shim-runc-v2': path('containerd-shim-runc-v2'),
    ctr: path('ctr'),
    busybox: part('busybox'),
    runc: part('runc'),
    directory: join(path('containerd-shim-runc-v2'), '..'),
  };
}

/** One folder per version, the newest first. */
function find(name: BuiltName): string | undefined {
  const usual = join(homedir(), '.cache', 'kube-bin');
  const versions = existsSync(usual) ? readdirSync(usual).sort().reverse() : [];
  const folders = [
    process.env['KUBE_BIN_DIR'] ?? '',
    ...versions.map((version) => join(usual, version)),
    builtPrograms,
  ];
  const candidates = [...folders.map((folder) => join(folder, name)), onPath(name) ?? ''];
  return candidates.find((path) => existsSync(path) && isNewEnough(name, path));
}

/** The API server cannot work with the etcd 3.4 of Debian 12, nor the box's configuration with a containerd 1. */
function isNewEnough(name: BuiltName, path: string): boolean {
  if (name !== 'etcd' && name !== 'containerd' && name !== 'ctr') return true;
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' });
  return name === 'etcd' ? !/ 3\.[0-4]\./.test(version) : / v?2\./.test(version);
}
