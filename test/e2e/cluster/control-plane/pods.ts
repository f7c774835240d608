/** Pods and workloads in tests: their objects, archwright's changes, and their nodes. */
import type { KubeObject, Pod, PodSpec } from '../../../../src/kube/api/objects.ts';
import { keys } from '../../../../src/names/keys.ts';
import type { Cluster } from '../harness.ts';
import { type Condition, type Watched } from './watch.ts';

export type PodNow = Pod & {
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly Condition[];
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

/** A workload of one container, with `app: NAME` on its pods. @param more of its spec */
export function workload(
  kind: 'Deployment' | 'DaemonSet' | 'StatefulSet',
  name: string,
  container: object,
  { namespace = 'default', labels = {}, pod = {}, ...more }: WorkloadOptions = {},
): object {
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name, ...labels } },
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'app', ...container }], ...pod },
      },
      ...more,
    },
  };
}

interface WorkloadOptions {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly pod?: object;
  readonly replicas?: number;
  readonly serviceName?: string;
}

export const podPath = (name: string, namespace = 'default'): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`;

export const isGated = (pod: Pod | undefined): boolean =>
  (pod?.spec.schedulingGates ?? []).some(({ name }) => name === keys.gate);

/** Waits until a pod is bound. @returns the name of its node */
export async function nodeOf(cluster: Cluster, name: string, namespace?: string): Promise<string> {
  const isBound = (now: Pod | undefined): boolean => now?.spec.nodeName !== undefined;
  return (await cluster.waitFor<Pod>(podPath(name, namespace), isBound))?.spec.nodeName ?? '';
}

/** Waits until a pod runs, or its time is over. */
export async function runningPod(
  cluster: Cluster,
  name: string,
  namespace?: string,
  ms?: number,
): Promise<PodNow> {
  const isRunning = (pod: PodNow | undefined): boolean => pod?.status?.phase === 'Running';
  const pod = await cluster.waitFor<PodNow>(podPath(name, namespace), isRunning, ms);
  if (pod === undefined) throw new TypeError(`${name} is gone`);
  return pod;
}

export interface EventNow extends KubeObject {
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly fieldPath?: string };
}

/** Waits for an event with this reason. @param of an object of this kind and name */
export async function waitForEvent(
  events: Watched<EventNow>,
  reason: string,
  [kind, name]: readonly [kind?: string, name?: RegExp] = [],
  ms?: number,
): Promise<EventNow> {
  const isIt = ({ reason: found, involvedObject = {} }: EventNow): boolean =>
    found === reason &&
    (kind === undefined || involvedObject.kind === kind) &&
    (name === undefined || name.test(involvedObject.name ?? ''));
  return events.until(`${reason} of ${kind} ${name}`, (all) => [...all.values()].find(isIt), ms);
}

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

export const podsOf = (pods: Iterable<PodNow>, app: string): PodNow[] =>
  [...pods].filter(({ metadata }) => metadata?.labels?.['app'] === app);
