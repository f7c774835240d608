/** The programs of the box: Kubernetes and containerd are found or built, runc and a static busybox are Debian's. */
import { debianProgram } from '../programs/debian.ts';
import { kubernetesPrograms } from '../programs/kubernetes.ts';

const names = ['etcd', 'kube-apiserver', 'kubelet', 'containerd', 'containerd-shim-runc-v2', 'ctr'] as const;

export type Programs = Readonly<Record<(typeof names)[number] | 'busybox' | 'runc', string>>;

/** @throws Error if one can be neither found, installed nor built */
export function findPrograms(): Programs {
  return {
    ...kubernetesPrograms(names),
    busybox: debianProgram('busybox'),
    runc: debianProgram('runc'),
  };
}
