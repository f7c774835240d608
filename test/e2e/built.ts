/**
 * Programs that are built: found in `KUBE_BIN_DIR`, in the usual cache or on the PATH, else built through the Go module proxy into
 * the cache of these tests, which takes some ten minutes for all of them.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  buildApiServer,
  buildKubernetes,
  builtPrograms,
  kubernetes,
  kwokStages,
  type BuiltName,
} from './build.ts';
import { onPath } from './parts.ts';

/**
 * @returns the path of each
 * @throws where one cannot be had; the message says which
 */
export function findBuilt<N extends BuiltName>(names: readonly N[]): Readonly<Record<N, string>> {
  const found = new Map<string, string>();
  for (const name of names) {
    const path = candidates(name).find((each) => existsSync(each) && isNewEnough(name, each));
    if (path !== undefined) found.set(name, path);
  }
  const missing = names.filter((name) => !found.has(name));
  for (const [name, path] of buildKubernetes(missing)) found.set(name, path);
  return Object.fromEntries(found) as Record<N, string>;
}

/**
 * The API server of one version of Kubernetes.
 * @param version `v1.30.14`
 * @throws where it cannot be had
 */
export function findApiServer(version: string): string {
  if (version === kubernetes) return findBuilt(['kube-apiserver'])['kube-apiserver'];
  const path = join(usual, version, 'kube-apiserver');
  return existsSync(path) ? path : buildApiServer(version);
}

/** Where the rules are by which kwok plays nodes and pods. */
export function findKwokStages(): string {
  return candidates('kwok-stages.yaml').find((path) => existsSync(path)) ?? kwokStages();
}

function candidates(name: string): readonly string[] {
  return [...folders().map((folder) => join(folder, name)), onPath(name) ?? ''];
}

/** Has a folder for each version. */
const usual = join(homedir(), '.cache', 'kube-bin');

/** The newest version first. */
function folders(): readonly string[] {
  const versions = existsSync(usual) ? readdirSync(usual).sort().reverse() : [];
  return [
    process.env['KUBE_BIN_DIR'] ?? '',
    ...versions.map((version) => join(usual, version)),
    builtPrograms,
  ].filter((folder) => folder !== '');
}

/** The API server cannot work with the etcd 3.4 of Debian 12, nor the configuration of these tests with a containerd 1. */
function isNewEnough(name: BuiltName, path: string): boolean {
  if (name !== 'etcd' && name !== 'containerd' && name !== 'ctr') return true;
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' });
  return name === 'etcd' ? !/ 3\.[0-4]\./.test(version) : / v?2\./.test(version);
}
