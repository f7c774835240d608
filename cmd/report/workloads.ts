/**
 * Whom the pods belong to: what a person applied, found by the names of their owners, each asked for once. Of a DaemonSet its
 * template too: its controller overwrites the node affinity of its pods with the name of their node.
 */
import { workloadOf } from '../../src/controller/misplaced/workload.ts';
import { concurrently } from '../../src/fleet/concurrently.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { KubeError } from '../../src/kube/errors.ts';
import type { KubeObject, OwnerReference, PodTemplate } from '../../src/kube/objects.ts';
import type { ReportedPod } from './pods.ts';

export interface ReportedWorkload {
  readonly kind: string;
  readonly name: string;
  /** Of a DaemonSet, where it can be read. */
  readonly template?: PodTemplate | undefined;
}

interface DaemonSet extends KubeObject {
  readonly spec?: { readonly template?: PodTemplate };
}

/** GETs under way at a time; a large cluster has thousands of owners. */
const concurrentOwners = 16;

/**
 * Finds them.
 * @returns the workload of a pod; a pod without an owner is its own. An owner that is gone or may not be read stands for itself
 * @throws KubeError where the API server gives no answer
 */
export async function workloadsOf(
  pods: readonly ReportedPod[],
  client: KubeClient,
  signal: AbortSignal,
): Promise<(pod: ReportedPod) => ReportedWorkload> {
  const owners = new Map<string, { readonly namespace: string; readonly owner: OwnerReference }>();
  for (const { namespace, owner } of pods) if (owner) owners.set(owner.uid, { namespace, owner });
  const found = new Map<string, ReportedWorkload>();
  await concurrently([...owners.values()], concurrentOwners, async ({ namespace, owner }) => {
    const { kind, name, uid } = owner;
    if (kind === 'DaemonSet' && owner.apiVersion === 'apps/v1') {
      found.set(uid, { kind, name, template: await templateOf(namespace, name, client, signal) });
      return;
    }
    const workload = await workloadOf(namespace, owner, { client, signal });
    found.set(uid, { kind: workload?.top.kind ?? kind, name: workload?.top.name ?? name });
  });
  return ({ owner, name }) => (owner && found.get(owner.uid)) ?? { kind: 'Pod', name };
}

async function templateOf(
  namespace: string,
  name: string,
  client: KubeClient,
  signal: AbortSignal,
): Promise<PodTemplate | undefined> {
  const path = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/daemonsets/${encodeURIComponent(name)}`;
  try {
    return (await client.get<DaemonSet>(path, { signal })).spec?.template;
  } catch (error) {
    if (error instanceof KubeError && (error.code === 'not-found' || error.code === 'forbidden'))
      return undefined;
    throw error;
  }
}
