/**
 * Adds the toleration of their node's taint to running pods. The taint evicts no pod, but autoscalers that
 * simulate scheduling, and deschedulers that look for violated taints, must find no violation.
 *
 * The API server accepts new tolerations on a running pod, but no change or removal. `spec.tolerations` is
 * one atomic list to every kind of patch but a JSON patch.
 */
import { backOffMs } from '../../../async/clock.ts';
import { changeObject, guardedPatch } from '../../../kube/api/change.ts';
import type { Patch } from '../../../kube/api/client.ts';
import { KubeError } from '../../../kube/api/errors.ts';
import type { Pod, Taint } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import { tolerates } from '../../pods/chosen-nodes.ts';
import { addition } from './own-taint.ts';

/** A retry soon after would be refused again, most often by a policy of the cluster. */
const backOff = { firstMs: 10_000, mostMs: 10 * 60_000 };

/** Pods that the API server refused to change, by `refusalKey`: why the last time, and how often. */
export type Refusals = Map<string, { readonly why: string; readonly times: number }>;

/**
 * Patches a pod, or adds it to `refusals` if the API server refuses that. Several conflicts in a row count as
 * a refusal.
 * @returns when to try a refused pod again
 * @throws KubeError if it is not about the pod
 */
export async function tolerate(
  pod: RunningPod,
  taint: Taint,
  refusals: Refusals,
  { client, signal }: Pick<LeaderContext, 'client' | 'signal'>,
): Promise<ReconcileResult> {
  const { namespace, name, uid, resourceVersion, tolerations } = pod;
  const read: Pod = { metadata: { uid, resourceVersion }, spec: { containers: [], tolerations } };
  // Another pod with this name was created meanwhile, and the webhook placed it.
  const patchOf = (now: Pod): Patch | undefined =>
    now.metadata?.uid === uid ? patchFor(now, taint) : undefined;
  try {
    await changeObject(client, paths.pods(namespace, name), patchOf, { signal, read });
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeError) || error.temporary || error.code === 'not-leading') throw error;
    const key = refusalKey(pod, taint);
    const times = (refusals.get(key)?.times ?? 0) + 1;
    refusals.set(key, { why: error.message, times });
    return { requeueAfterMs: backOffMs(backOff, times) };
  }
}

function patchFor(pod: Pod, taint: Taint): Patch | undefined {
  const { tolerations = [] } = pod.spec;
  if (tolerates(tolerations, taint)) return undefined;
  const { key, value = '', effect } = taint;
  const added = { key, operator: 'Equal', value, effect };
  return guardedPatch(pod, [addition('/spec/tolerations', tolerations, added)]);
}

export function refusalKey({ uid }: RunningPod, { key, value = '' }: Taint): string {
  return `${uid} ${key}=${value}`;
}
