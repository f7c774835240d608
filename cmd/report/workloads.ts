/**
 * Whom the pods belong to: what a person applied, found by the names of their owners, each asked for once. Of a DaemonSet its
 * template too: its controller overwrites the node affinity of its pods with the name of their node.
 */
import {
  daemonSetApiVersion,
  daemonTemplateOf,
  isDaemon,
  workloadOf,
} from '../../src/controller/scope/workload.ts';
import { concurrently } from '../../src/async/concurrently.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { OwnerReference, PodTemplate } from '../../src/kube/api/objects.ts';
import type { ReportedPod } from './pods.ts';

export interface ReportedWorkload {
  readonly kind: string;
  readonly name: string;
  /** Of a DaemonSet, where it can be read. */
  readonly template?: PodTemplate;
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
    if (isDaemon({ owner }) && owner.apiVersion === daemonSetApiVersion) {
      const template = await daemonTemplateOf({ namespace, owner }, { client, signal });
      found.set(uid, { kind, name, ...(typeof template === 'object' && { template }) });
      return;
    }
    const workload = await workloadOf(namespace, owner, { client, signal });
    found.set(uid, { kind: workload?.top.kind ?? kind, name: workload?.top.name ?? name });
  });
  return ({ owner, name }) => (owner && found.get(owner.uid)) ?? { kind: 'Pod', name };
}
