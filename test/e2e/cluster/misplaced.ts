/** Pods on nodes that cannot run them, in a cluster without kubelets. */
import type { Cluster } from './harness.ts';
import { podPath, type PodNow } from './pods.ts';
import { hasCondition, type Watched } from './watch.ts';

export const isGoing = ({ metadata }: PodNow): boolean => metadata?.deletionTimestamp !== undefined;
export const isOn = ({ spec }: PodNow, architecture: string): boolean =>
  spec.nodeName?.startsWith(architecture) ?? false;

export async function cordon(
  cluster: Cluster,
  nodes: readonly string[],
  unschedulable: boolean,
): Promise<void> {
  for (const node of nodes) await cluster.merge(`/api/v1/nodes/${node}`, { spec: { unschedulable } });
}

/** Sets the status that a kubelet reports for a binary of another architecture. */
export async function crash(cluster: Cluster, { metadata, spec }: PodNow): Promise<void> {
  const container = {
    name: 'app',
    image: spec.containers[0]?.image ?? '',
    imageID: '',
    ready: false,
    restartCount: 4,
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: { reason: 'Error', exitCode: 255 } },
  };
  const status = { conditions: [{ type: 'Ready', status: 'False' }], containerStatuses: [container] };
  const path = `${podPath(metadata?.name ?? '', metadata?.namespace)}/status`;
  await cluster.patch(path, { type: 'strategic', body: { status } });
}

export const podsOf = (pods: Iterable<PodNow>, app: string): PodNow[] =>
  [...pods].filter(({ metadata }) => metadata?.labels?.['app'] === app);

/** Waits until a workload has exactly this many ready pods, all on nodes of an architecture. */
export async function settledOn(
  pods: Watched<PodNow>,
  app: string,
  architecture: string,
  count: number,
): Promise<PodNow[]> {
  const isSettled = (pod: PodNow): boolean =>
    hasCondition(pod, 'Ready') && !isGoing(pod) && isOn(pod, architecture);
  return pods.until(
    `${count} ready pods of ${app} on ${architecture}`,
    (objects) => {
      const found = podsOf(objects.values(), app);
      return found.length === count && found.every(isSettled) && found;
    },
    120_000,
  );
}
