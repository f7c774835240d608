/**
 * Gives running pods the toleration of their node's taint. The taint evicts nobody, and pods that come later get their
 * toleration from the webhook; but who simulates scheduling or looks for violated taints (autoscalers, deschedulers) must
 * not find pods that seem to be in the wrong place.
 *
 * The API server lets tolerations be added to a running pod, never changed or removed. `spec.tolerations` is one atomic
 * list to every kind of patch but a JSON patch; the patch carries the resourceVersion of the pod that it was made from.
 */
import { concurrently } from '../../async/concurrently.ts';
import type { KubeClient, Patch } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod, Taint, Toleration } from '../../kube/api/objects.ts';
import type { RunningPod } from '../caches/caches.ts';
import { tolerationOf } from './plan.ts';
import { tolerates } from '../scope/node-room.ts';
import { paths } from '../../kube/api/paths.ts';

export interface PodToTolerate {
  readonly pod: RunningPod;
  readonly taint: Taint;
}

export interface Refused extends PodToTolerate {
  readonly error: KubeError;
}

export interface TolerateOptions {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  /** After so many refusals no further pod is begun: more are of the same cause, a missing right or a policy of the cluster. */
  readonly maxRefused: number;
  /** Called after each pod. */
  readonly done: (pod: RunningPod) => Promise<void> | void;
}

/** Few, so that gates, which wait for the same limiter, come first. */
const workers = 4;
const tries = 5;

/**
 * Patches the pods.
 * @returns those that the API server refuses to change
 * @throws KubeError where trying again later can help: no further pod is begun then
 */
export async function toleratePods(
  pods: readonly PodToTolerate[],
  options: TolerateOptions,
): Promise<readonly Refused[]> {
  const refused: Refused[] = [];
  await concurrently(pods, workers, async (each) => {
    options.signal.throwIfAborted();
    if (refused.length >= options.maxRefused) return;
    try {
      await tolerate(each, options);
      await options.done(each.pod);
    } catch (error) {
      if (!(error instanceof KubeError) || isPassing(error)) throw error;
      refused.push({ ...each, error });
    }
  });
  return refused;
}

async function tolerate({ pod, taint }: PodToTolerate, { client, signal }: TolerateOptions): Promise<void> {
  const path = paths.pods(pod.namespace, pod.name);
  let { resourceVersion, tolerations } = pod;
  for (let left = tries; ; left -= 1) {
    if (tolerates(tolerations, taint)) return;
    try {
      await client.patch(path, addition(resourceVersion, tolerations, taint), { signal });
      return;
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 'not-found') return;
      if (error.code !== 'conflict' || left === 1) throw error;
    }
    const now = await read(client, path, signal);
    // Another pod of the same name came through the webhook.
    if (now?.metadata?.uid !== pod.uid) return;
    resourceVersion = now.metadata.resourceVersion ?? '';
    tolerations = now.spec.tolerations ?? [];
  }
}

function addition(resourceVersion: string, tolerations: readonly Toleration[], taint: Taint): Patch {
  const added = tolerationOf(taint);
  return {
    type: 'json',
    body: [
      { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      tolerations.length === 0
        ? { op: 'add', path: '/spec/tolerations', value: [added] }
        : { op: 'add', path: '/spec/tolerations/-', value: added },
    ],
  };
}

async function read(client: KubeClient, path: string, signal: AbortSignal): Promise<Pod | undefined> {
  try {
    return await client.get<Pod>(path, { signal });
  } catch (error) {
    if (error instanceof KubeError && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** Whether it says nothing about the pod. */
function isPassing({ temporary, code }: KubeError): boolean {
  return temporary || code === 'conflict' || code === 'not-leading';
}
