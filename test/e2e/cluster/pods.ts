/** Pods in tests: how they are written, what archwright did to them, and where they run. */
import type { Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import type { Cluster } from './harness.ts';
import { waitFor } from './watch.ts';

export type PodNow = Pod & {
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly containerStatuses?: readonly {
      readonly containerID?: string;
      readonly state?: { readonly waiting?: { readonly reason?: string } };
    }[];
  };
};

/** A pod of one container. @param spec more of its spec, or other containers */
export function podOf(
  name: string,
  image: string,
  spec: Partial<PodSpec> = {},
  metadata: object = {},
): { readonly apiVersion: string; readonly kind: string } & Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'app', image }], ...spec },
  };
}

export const podPath = (name: string, namespace = 'default'): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`;

export const isGated = (pod: Pod | undefined): boolean =>
  (pod?.spec.schedulingGates ?? []).some(({ name }) => name === keys.gate);

/** Waits until a pod is bound. @returns the name of its node */
export async function nodeOf(cluster: Cluster, name: string, namespace?: string): Promise<string> {
  const pod = await waitFor<Pod>(
    cluster.client,
    podPath(name, namespace),
    (now) => now?.spec.nodeName !== undefined,
  );
  return pod?.spec.nodeName ?? '';
}

/** Waits until a pod runs, or its time is over. */
export async function runningPod(
  cluster: Cluster,
  name: string,
  namespace?: string,
  ms?: number,
): Promise<PodNow> {
  const isRunning = (pod: PodNow | undefined): boolean => pod?.status?.phase === 'Running';
  const pod = await waitFor<PodNow>(cluster.client, podPath(name, namespace), isRunning, ms);
  if (pod === undefined) throw new TypeError(`${name} is gone`);
  return pod;
}
