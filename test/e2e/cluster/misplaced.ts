/** Pods on nodes that cannot run them, in a cluster without kubelets. */
import { type Cluster } from './harness.ts';
import type { PodNow } from './pods.ts';
import type { Watched } from './watch.ts';

export const isReady = ({ status }: PodNow): boolean =>
  status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false;
export const isGoing = ({ metadata }: PodNow): boolean => metadata?.deletionTimestamp !== undefined;
export const isOn = ({ spec }: PodNow, architecture: string): boolean =>
  spec.nodeName?.startsWith(architecture) ?? false;

export interface DeploymentOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly namespace?: string;
  /** Of each pod. */
  readonly cpu?: string;
}

export function deployment(
  name: string,
  image: string,
  replicas: number,
  { labels = {}, namespace, cpu }: DeploymentOptions = {},
): object {
  const resources = cpu === undefined ? {} : { requests: { cpu } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name, ...labels } },
        spec: { containers: [{ name: 'app', image, resources }], terminationGracePeriodSeconds: 1 },
      },
    },
  };
}

export async function cordon(
  cluster: Cluster,
  nodes: readonly string[],
  unschedulable: boolean,
): Promise<void> {
  for (const node of nodes) {
    const body = { spec: { unschedulable } };
    await cluster.merge(`/api/v1/nodes/${node}`, body);
  }
}

/** Sets the status that a kubelet reports for a binary of another architecture. */
export async function crash(cluster: Cluster, pod: PodNow): Promise<void> {
  const { name = '', namespace = '' } = pod.metadata ?? {};
  const { image = '' } = pod.spec.containers[0] ?? {};
  const status = {
    conditions: [{ type: 'Ready', status: 'False' }],
    containerStatuses: [
      {
        name: 'app',
        image,
        imageID: '',
        ready: false,
        restartCount: 4,
        state: { waiting: { reason: 'CrashLoopBackOff' } },
        lastState: { terminated: { reason: 'Error', exitCode: 255 } },
      },
    ],
  };
  await cluster.patch(`/api/v1/namespaces/${namespace}/pods/${name}/status`, {
    type: 'strategic',
    body: { status },
  });
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
  return pods.until(
    `${count} ready pods of ${app} on ${architecture}`,
    (objects) => {
      const found = podsOf(objects.values(), app);
      return (
        found.length === count &&
        found.every((pod) => isReady(pod) && !isGoing(pod) && isOn(pod, architecture)) &&
        found
      );
    },
    120_000,
  );
}
