/** The programs of the box with a whole cluster and a real node in it: found, installed or built before it starts. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { findBuilt, findKwokStages } from '../built.ts';
import { helm, helms } from '../chart/helm.ts';
import { containerdProgram, containerdShim } from '../node/containerd-programs.ts';
import { part, run, say } from '../parts.ts';

const current = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
  'kubelet',
  'kube-proxy',
  'kubectl',
  'containerd',
  'containerd-shim-runc-v2',
  'ctr',
] as const;
const debian = ['busybox', 'runc', 'buildah', 'skopeo', 'docker-registry', 'iptables'] as const;

export type Programs = Readonly<
  Record<(typeof current)[number] | (typeof debian)[number] | (typeof helms)[number], string>
>;

/** Where Debian puts the plugins that give pods their network. */
export const cniPlugins = '/usr/lib/cni';

/** @throws where one cannot be had; the message says which */
export function findPrograms(): Programs {
  findKwokStages();
  if (!existsSync(`${cniPlugins}/bridge`)) {
    say('installing the Debian package containernetworking-plugins');
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'containernetworking-plugins']);
  }
  const wanted = process.env['E2E_CONTAINERD'] ?? '2';
  if (wanted !== '2' && wanted !== '1.7') throw new Error(`E2E_CONTAINERD is 2 or 1.7, not ${wanted}`);
  return {
    ...findBuilt(current),
    ...(wanted === '1.7' && {
      containerd: containerdProgram(wanted).path,
      'containerd-shim-runc-v2': containerdShim(wanted),
    }),
    ...(Object.fromEntries(debian.map((name) => [name, part(name)])) as Record<
      (typeof debian)[number],
      string
    >),
    ...(Object.fromEntries(helms.map((name) => [name, helm(name)])) as Record<
      (typeof helms)[number],
      string
    >),
  };
}

/** Folders that the box has to show: those may be mounts of their own. */
export function foldersOf(programs: Programs): readonly string[] {
  return [...new Set(Object.values(programs).map((path) => dirname(path)))].filter(
    (folder) => !/^\/(?:usr|bin|sbin)(?:\/|$)/.test(folder),
  );
}
