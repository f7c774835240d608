/**
 * Adds the toleration of their node's taint to running pods. The taint evicts no pod, but autoscalers that
 * simulate scheduling, and deschedulers that look for violated taints, must find no violation.
 *
 * The API server accepts new tolerations on a running pod, but no change or removal. `spec.tolerations` is
 * one atomic list to every kind of patch but a JSON patch.
 */
import { backOffMs } from '../../../async/back-off.ts';
import type { Clock } from '../../../async/clock.ts';
import { concurrently } from '../../../async/concurrently.ts';
import { changeObject, guardedPatch } from '../../../kube/api/change.ts';
import type { Patch } from '../../../kube/api/client.ts';
import { KubeError } from '../../../kube/api/errors.ts';
import type { Pod, Taint } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { tolerates } from '../../pods/chosen-nodes.ts';
import { addition } from './own-taint.ts';

export interface TolerateOptions extends Pick<LeaderContext, 'client' | 'signal'> {
  /** After so many refusals no further pod is tried: they have one cause (missing right, cluster policy). */
  readonly maxRefused: number;
  readonly done: (pod: RunningPod) => void;
}

/** Few, so that gates, which share the limiter, come first. */
const workers = 4;

/**
 * Patches the pods, and adds those that the API server refuses to change to `refusals`. Several conflicts in
 * a row count as a refusal: whoever changes a pod all the time must not hold up the others.
 * @throws KubeError if it is not about the pod: no further pod is begun then
 */
export async function toleratePods(
  pods: readonly RunningPod[],
  taint: Taint,
  refusals: Refusals,
  options: TolerateOptions,
): Promise<void> {
  let refused = 0;
  await concurrently(pods, workers, async (pod) => {
    options.signal.throwIfAborted();
    if (refused >= options.maxRefused) return;
    try {
      await tolerate(pod, taint, options);
      options.done(pod);
    } catch (error) {
      if (!(error instanceof KubeError) || error.temporary || error.code === 'not-leading') throw error;
      refused += 1;
      refusals.add(pod, taint, error.message);
    }
  });
}

async function tolerate(pod: RunningPod, taint: Taint, { client, signal }: TolerateOptions): Promise<void> {
  const { namespace, name, uid, resourceVersion, tolerations } = pod;
  const read: Pod = { metadata: { uid, resourceVersion }, spec: { containers: [], tolerations } };
  // Another pod with this name was created meanwhile, and the webhook placed it.
  const patchOf = (now: Pod): Patch | undefined =>
    now.metadata?.uid === uid ? patchFor(now, taint) : undefined;
  await changeObject(client, paths.pods(namespace, name), patchOf, { signal, read });
}

function patchFor(pod: Pod, taint: Taint): Patch | undefined {
  const { tolerations = [] } = pod.spec;
  if (tolerates(tolerations, taint)) return undefined;
  const { key, value = '', effect } = taint;
  const added = { key, operator: 'Equal', value, effect };
  return guardedPatch(pod, [addition('/spec/tolerations', tolerations, added)]);
}

/** From the second refusal. After the first, the next run tries again: a policy may have been fixed. */
const backOff = { firstMs: 20_000, mostMs: 10 * 60_000 };

interface Refusal {
  readonly why: string;
  readonly times: number;
  readonly until: number;
}

/**
 * Pods that the API server refuses to change, most often by a policy of the cluster. A retry in ten seconds
 * would fail again, so each is backed off, longer each time.
 */
export class Refusals {
  readonly #clock: Clock;
  #known = new Map<string, Refusal>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(pod: RunningPod, taint: Taint, why: string): void {
    const times = (this.#known.get(keyOf(pod, taint))?.times ?? 0) + 1;
    const ms = times === 1 ? 0 : backOffMs(backOff, times - 1);
    this.#known.set(keyOf(pod, taint), { why, times, until: this.#clock.monotonic() + ms });
  }

  /** Why the pod was refused last; `undefined`: it was not. */
  why(pod: RunningPod, taint: Taint): string | undefined {
    return this.#known.get(keyOf(pod, taint))?.why;
  }

  isBackedOff(pod: RunningPod, taint: Taint): boolean {
    return this.#clock.monotonic() < (this.#known.get(keyOf(pod, taint))?.until ?? 0);
  }

  /** Forgets all but these. */
  keep(pods: readonly { readonly pod: RunningPod; readonly taint: Taint }[]): void {
    const keys = new Set(pods.map(({ pod, taint }) => keyOf(pod, taint)));
    this.#known = new Map([...this.#known].filter(([key]) => keys.has(key)));
  }
}

function keyOf({ uid }: RunningPod, { key, value = '' }: Taint): string {
  return `${uid} ${key}=${value}`;
}
