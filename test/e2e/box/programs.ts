/** The programs of boxes: found, installed or built before the box starts. @throws if one is unavailable */
import { containerdProgram, containerdShim } from '../programs/containerd.ts';
import { debianPackages, debianProgram, installCniPlugins, type DebianProgram } from '../programs/debian.ts';
import { helmProgram, helms, type HelmName } from '../programs/helm.ts';
import {
  kubernetesProgramNames,
  kubernetesPrograms,
  kwokStages,
  type KubernetesProgram,
} from '../programs/kubernetes.ts';

export type Programs = Readonly<Record<KubernetesProgram | DebianProgram | HelmName, string>>;

export function kubeletPrograms() {
  const names = [
    'etcd',
    'kube-apiserver',
    'kubelet',
    'containerd',
    'containerd-shim-runc-v2',
    'ctr',
  ] as const;
  return { ...kubernetesPrograms(names), ...byName(['busybox', 'runc'], debianProgram) };
}

export function helmPrograms(): Programs {
  kwokStages();
  installCniPlugins();
  const wanted = process.env['E2E_CONTAINERD'] ?? '2';
  if (wanted !== '2' && wanted !== '1.7') throw new Error(`E2E_CONTAINERD is 2 or 1.7, not ${wanted}`);
  return {
    ...kubernetesPrograms(kubernetesProgramNames),
    ...(wanted === '1.7' && {
      containerd: containerdProgram(wanted).path,
      'containerd-shim-runc-v2': containerdShim(wanted),
    }),
    ...byName(Object.keys(debianPackages) as DebianProgram[], debianProgram),
    ...byName(helms, helmProgram),
  };
}

function byName<N extends string>(names: readonly N[], find: (name: N) => string): Record<N, string> {
  return Object.fromEntries(names.map((name) => [name, find(name)])) as Record<N, string>;
}
