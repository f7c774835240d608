/** The running parts of archwright: pods, Deployments and DaemonSets in its namespace, by their labels. */
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { KubeObject, PodWithStatus } from '../../src/kube/api/objects.ts';
import { objectsOf } from '../../src/kube/api/pages.ts';
import { namespacedPath, paths } from '../../src/kube/api/paths.ts';

export const parts = ['webhook', 'controller', 'agent'] as const;
export type Part = (typeof parts)[number];

interface PartPod extends KubeObject, Pick<PodWithStatus, 'status'> {
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly {
      readonly name?: string;
      readonly image?: string;
      readonly args?: readonly string[];
      readonly ports?: readonly { readonly name?: string; readonly containerPort?: number }[];
      readonly readinessProbe?: { readonly httpGet?: { readonly scheme?: string } };
    }[];
    readonly volumes?: readonly { readonly name?: string; readonly configMap?: { readonly name?: string } }[];
  };
}

/** A Deployment or DaemonSet of a part. */
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

export interface Replica {
  readonly part: Part;
  readonly namespace: string;
  readonly name: string;
  readonly node: string | undefined;
  readonly address: string | undefined;
  readonly image: string;
  /** Name of its pool of nodes; only agents have one. */
  readonly pool: string | undefined;
  readonly isReady: boolean;
  readonly isRunning: boolean;
  readonly configMap: string | undefined;
  readonly metrics: { readonly port: number; readonly isTls: boolean } | undefined;
  /** Why it is not ready, as the kubelet or the scheduler says. */
  readonly trouble: string | undefined;
}

const poolLabel = 'archwright.arch.example/pool';
const deployments = namespacedPath('apps/v1', 'deployments');
const selection = { labelSelector: `app.kubernetes.io/component in (${parts.join(',')})` };

/** The pods of archwright that are not being deleted. @throws KubeError */
export async function listReplicas(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly Replica[]> {
  const found: Replica[] = [];
  const pods = objectsOf<PartPod>(client, paths.pods(namespace), { signal, query: selection });
  for await (const pod of pods) {
    const replica = replicaOf(pod, namespace);
    if (replica) found.push(replica);
  }
  return found.toSorted(
    (a, b) => parts.indexOf(a.part) - parts.indexOf(b.part) || (a.name < b.name ? -1 : 1),
  );
}

/** @throws KubeError */
export async function listWorkloads(
  client: KubeClient,
  namespace: string,
  kind: 'Deployment' | 'DaemonSet',
  signal: AbortSignal,
): Promise<readonly Workload[]> {
  const path = kind === 'Deployment' ? deployments(namespace) : paths.daemonSets(namespace);
  const labels = kind === 'Deployment' ? selection : { labelSelector: 'app.kubernetes.io/component=agent' };
  const found: Workload[] = [];
  for await (const each of objectsOf<Workload>(client, path, { signal, query: labels })) found.push(each);
  return found;
}

export function poolOf({ metadata }: KubeObject): string | undefined {
  return metadata?.labels?.[poolLabel];
}

/** @returns `undefined` for a pod of another program with the same label, and for one that ends */
function replicaOf({ metadata, spec, status }: PartPod, namespace: string): Replica | undefined {
  const part = parts.find((each) => each === metadata?.labels?.['app.kubernetes.io/component']);
  const container = spec?.containers?.find(({ name, args }) => name === part && args?.[0] === part);
  if (part === undefined || container === undefined || metadata?.deletionTimestamp !== undefined)
    return undefined;
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return undefined;
  const port = container.ports?.find(({ name }) => name === 'metrics')?.containerPort;
  const { scheme } = container.readinessProbe?.httpGet ?? {};
  const isReady =
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  return {
    part,
    namespace,
    name: metadata?.name ?? '',
    node: spec?.nodeName,
    address: status?.podIP,
    image: container.image ?? '',
    pool: poolOf({ ...(metadata && { metadata }) }),
    isReady,
    isRunning: status?.phase === 'Running',
    configMap: spec?.volumes?.find(({ name }) => name === 'config')?.configMap?.name,
    metrics: port === undefined ? undefined : { port, isTls: scheme === 'HTTPS' },
    trouble: isReady ? undefined : troubleOf(status),
  };
}

function troubleOf(status: PartPod['status']): string {
  for (const { state, lastState } of status?.containerStatuses ?? []) {
    const { reason, message } = state?.waiting ?? {};
    const { exitCode } = lastState?.terminated ?? {};
    const last = exitCode === undefined ? '' : ` (last exit code ${exitCode})`;
    if (reason !== undefined) return `${reason}${last}${message === undefined ? '' : `: ${message}`}`;
  }
  const blocked = status?.conditions?.find(
    ({ type, status: is, message }) => type === 'PodScheduled' && is === 'False' && message !== undefined,
  );
  if (blocked) return `${blocked.reason ?? 'not scheduled'}: ${blocked.message ?? ''}`;
  return status?.phase === 'Running' ? 'not ready' : (status?.phase ?? 'unknown');
}
