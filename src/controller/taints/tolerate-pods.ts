/**
 * Adds the toleration of their node's taint to running pods. The taint evicts no pod, and new pods get the toleration from the
 * webhook. But autoscalers that simulate scheduling and deschedulers that look for violated taints must not find running pods in the
 * wrong place.
 *
 * The API server accepts new tolerations on a running pod, but no change or removal. `spec.tolerations` is one atomic list to every
 * kind of patch but a JSON patch.
 */
import { concurrently } from '../../async/concurrently.ts';
import { changeObject, guardedPatch } from '../../kube/api/change.ts';
import type { KubeClient, Patch } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod, Taint } from '../../kube/api/objects.ts';
import type { RunningPod } from '../caches/cached.ts';
import { tolerationOf } from './plan.ts';
import { paths } from '../../kube/api/paths.ts';
import { tolerates } from '../scope/node-readiness.ts';

export interface Refused {
  readonly pod: RunningPod;
  readonly error: KubeError;
}

export interface TolerateOptions {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  /** After so many refusals no further pod is begun: more have the same cause, a missing right or a policy of the cluster. */
  readonly maxRefused: number;
  /** Called after each pod. */
  readonly done: (pod: RunningPod) => Promise<void> | void;
}

/** Few, so that gates, which share the limiter, come first. */
const workers = 4;

/**
 * Patches the pods.
 * @returns the pods that the API server refuses to change
 * @throws KubeError if a later retry can help: no further pod is begun then
 */
export async function toleratePods(
  pods: readonly RunningPod[],
  taint: Taint,
  options: TolerateOptions,
): Promise<readonly Refused[]> {
  const refused: Refused[] = [];
  await concurrently(pods, workers, async (pod) => {
    options.signal.throwIfAborted();
    if (refused.length >= options.maxRefused) return;
    try {
      await tolerate(pod, taint, options);
      await options.done(pod);
    } catch (error) {
      if (!(error instanceof KubeError) || isTemporary(error)) throw error;
      refused.push({ pod, error });
    }
  });
  return refused;
}

async function tolerate(pod: RunningPod, taint: Taint, { client, signal }: TolerateOptions): Promise<void> {
  const { namespace, name, uid, resourceVersion, tolerations } = pod;
  const read: Pod = { metadata: { uid, resourceVersion }, spec: { containers: [], tolerations } };
  // Another pod with this name was created meanwhile, and the webhook placed it.
  const patchOf = (now: Pod): Patch | undefined =>
    now.metadata?.uid === uid ? addition(now, taint) : undefined;
  await changeObject(client, paths.pods(namespace, name), patchOf, { signal, read });
}

function addition(pod: Pod, taint: Taint): Patch | undefined {
  const { tolerations = [] } = pod.spec;
  if (tolerates(tolerations, taint)) return undefined;
  const added = tolerationOf(taint);
  return guardedPatch(pod, [
    tolerations.length === 0
      ? { op: 'add', path: '/spec/tolerations', value: [added] }
      : { op: 'add', path: '/spec/tolerations/-', value: added },
  ]);
}

/** Whether the error is not about the pod. */
function isTemporary({ temporary, code }: KubeError): boolean {
  return temporary || code === 'conflict' || code === 'not-leading';
}
