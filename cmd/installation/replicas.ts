/** The running parts of archwright: pods, Deployments and DaemonSets in its namespace, by their labels. */
import {
  isReady,
  type ContainerStatus,
  type KubeObject,
  type PodWithStatus,
} from '../../src/kube/api/objects.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { objectsOf } from '../../src/kube/api/pages.ts';
import { namespacedPath, paths } from '../../src/kube/api/paths.ts';
import { exitCodes } from '../program/exit.ts';
import { partOfArchwright } from '../wiring/cluster.ts';

const parts = ['webhook', 'controller', 'agent'] as const;
type Part = (typeof parts)[number];

export interface Workload extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly desiredNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

export type Replica = NonNullable<ReturnType<typeof replicaOf>>;

const poolLabel = 'archwright.arch.example/pool';
const deployments = namespacedPath('apps/v1', 'deployments');
/** Other programs in the namespace have such components too, for example cert-manager. */
const selecting = (...of: readonly Part[]) => ({
  labelSelector: `${partOfArchwright},app.kubernetes.io/component in (${of.join(',')})`,
});

/** The pods of archwright that are not being deleted. @throws KubeError */
export async function listReplicas(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly Replica[]> {
  const pods = objectsOf<PodWithStatus>(client, paths.pods(namespace), {
    signal,
    query: selecting(...parts),
  });
  const found = await Array.fromAsync(pods, (pod) => replicaOf(pod, namespace));
  return found
    .filter((replica) => replica !== undefined)
    .toSorted((a, b) => parts.indexOf(a.part) - parts.indexOf(b.part) || (a.name < b.name ? -1 : 1));
}

export async function listWorkloads(
  client: KubeClient,
  namespace: string,
  kind: 'Deployment' | 'DaemonSet',
  signal: AbortSignal,
): Promise<readonly Workload[]> {
  const path = kind === 'Deployment' ? deployments(namespace) : paths.daemonSets(namespace);
  const query = kind === 'Deployment' ? selecting('webhook', 'controller') : selecting('agent');
  return await Array.fromAsync(objectsOf<Workload>(client, path, { signal, query }));
}

export function agentPoolOf({ metadata }: KubeObject): string | undefined {
  return metadata?.labels?.[poolLabel];
}

/** @returns `undefined` for a pod of another program with the same label, and for one that ends */
function replicaOf({ metadata, spec, status }: PodWithStatus, namespace: string) {
  const part = parts.find((each) => each === metadata?.labels?.['app.kubernetes.io/component']);
  const container = spec.containers.find(({ name, args }) => name === part && args?.[0] === part);
  if (part === undefined || container === undefined || metadata?.deletionTimestamp !== undefined)
    return undefined;
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return undefined;
  const port = container.ports?.find(({ name }) => name === 'metrics')?.containerPort;
  const { scheme } = container.readinessProbe?.httpGet ?? {};
  const { state } = status?.containerStatuses?.find(({ name }) => name === part) ?? {};
  const hasCrashed = hasEnded(state);
  return {
    part,
    namespace,
    name: metadata?.name ?? '',
    node: spec.nodeName,
    address: status?.podIP,
    image: container.image ?? '',
    /** Name of its pool of nodes; only agents have one. */
    pool: agentPoolOf({ metadata }),
    isReady: isReady(status),
    /** Its container runs, so its metrics can be read. */
    isRunning: status?.phase === 'Running' && !hasCrashed && state?.waiting === undefined,
    /** Its container ended. The kubelet starts it again, later each time. */
    hasCrashed,
    configMap: spec.volumes?.find(({ name }) => name === 'config')?.configMap?.name,
    metrics: port === undefined ? undefined : { port, isTls: scheme === 'HTTPS' },
    /** Why it is not ready, as the kubelet or the scheduler says. */
    trouble: isReady(status) ? undefined : troubleOf(status, part),
  };
}

function hasEnded(state: ContainerStatus['state']): boolean {
  return state?.terminated !== undefined || state?.waiting?.reason === 'CrashLoopBackOff';
}

const misconfigured =
  'its configuration is wrong; see its log. Once it is right, delete the pod to start it at once';
const outOfMemory = 'OOMKilled';
const noMemory = 'it needed more memory than its limit; raise resources.limits.memory';

function troubleOf(status: PodWithStatus['status'], part: Part): string {
  const starting = (status?.initContainerStatuses ?? []).filter(
    ({ state }) => state?.terminated?.exitCode !== 0,
  );
  for (const { name, state, lastState } of [...starting, ...(status?.containerStatuses ?? [])]) {
    const { reason, message } = state?.waiting ?? {};
    const { exitCode, reason: end } = state?.terminated ?? lastState?.terminated ?? {};
    const last = exitCode === undefined ? '' : ` (last exit code ${exitCode})`;
    const which = name === part ? '' : `container ${name}: `;
    // The kubelet's message has the name of the pod, and no cause.
    if (hasEnded(state)) {
      const isMisconfigured = name === part && exitCode === exitCodes.usage;
      const advice = isMisconfigured ? misconfigured : end === outOfMemory ? noMemory : 'see its log';
      return `${which}${reason ?? 'the container ended'}${last}: ${advice}`;
    }
    if (reason !== undefined) return `${which}${reason}${last}${message === undefined ? '' : `: ${message}`}`;
  }
  const blocked = status?.conditions?.find(
    ({ type, status: is, message }) => type === 'PodScheduled' && is === 'False' && message !== undefined,
  );
  if (blocked) return `${blocked.reason ?? 'not scheduled'}: ${blocked.message ?? ''}`;
  return status?.phase === 'Running' ? 'not ready' : (status?.phase ?? 'unknown');
}
