/** The programs of the box: Kubernetes and containerd are found or built, runc and a static busybox are Debian's. */
import { join } from 'node:path';
import { findBuilt } from '../built.ts';
import { part } from '../parts.ts';

const names = ['etcd', 'kube-apiserver', 'kubelet', 'containerd', 'containerd-shim-runc-v2', 'ctr'] as const;

export type Programs = Readonly<Record<(typeof names)[number] | 'busybox' | 'runc', string>> & {
  /** Holds containerd's shim, which it looks for on its PATH. */
  readonly directory: string;
};

/**
 * @throws where one cannot be had; the message says which
 */
export function findPrograms(): Programs {
  const built = findBuilt(names);
  return {
    ...built,
    busybox: part('busybox'),
    runc: part('runc'),
    directory: join(built['containerd-shim-runc-v2'], '..'),
  };
}
