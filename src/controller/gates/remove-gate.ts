/**
 * Opens the gate of one pod by one patch. Where the pod has changed meanwhile it is decided again from what it is now. Where
 * the API server refuses the placement itself, the gate goes without it: a pod that may run anywhere is told about, a pod
 * that is stuck is a loss.
 */
import { paths } from '../../kube/api/paths.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { PlacementDecision } from '../../placement/decision.ts';
import type { NodesOf } from '../../placement/patch/narrow-terms.ts';
import { patchGatedPod, ungatedPod } from '../../placement/patch/patch.ts';
import { carriesGate } from '../caches/waiting-pods.ts';

/** `opened`: as decided. `gate-only`: without the placement. `gone`: nothing of ours is left to do. `changed`: look again. */
export type Opened =
  | { readonly kind: 'opened'; readonly pod: Pod; readonly decision: PlacementDecision }
  | { readonly kind: 'gate-only'; readonly pod: Pod; readonly why: string }
  | { readonly kind: 'gone' }
  | { readonly kind: 'changed' };

export interface OpeningOptions {
  readonly client: KubeClient;
  readonly nodesOf: NodesOf;
  /** Called for each try that failed and was answered by another one. */
  readonly onConflict: () => void;
  readonly step: (name: string) => Promise<void> | void;
}

export interface Opening {
  /**
   * @param pod as it was decided
   * @param again decides the pod from what it is now; `undefined`: it has to wait
   * @throws KubeError where trying again later can help
   */
  open(
    pod: Pod,
    decision: PlacementDecision,
    again: (pod: Pod) => PlacementDecision | undefined,
    signal: AbortSignal,
  ): Promise<Opened>;
  /**
   * Takes the gate away and changes nothing else.
   * @throws KubeError
   */
  openOnly(pod: Pod, why: string, signal: AbortSignal): Promise<Opened>;
}

/** What the API server says of annotations that have more than 256 KiB together (apimachinery `ValidateAnnotationsSize`). */
const noRoomForRecord = 'metadata.annotations: Too long';

/** Somebody who writes to a gated pod does so once or twice, not in a circle. */
const maxTries = 4;

export function createOpening({ client, nodesOf, onConflict, step }: OpeningOptions): Opening {
  async function write(pod: Pod, body: readonly object[], signal: AbortSignal): Promise<void> {
    await step('gates/decided');
    await client.patch(pathOf(pod), { type: 'json', body }, { signal });
    await step('gates/opened');
  }

  /** The pod as it is now; `undefined` where it is gone, another one by that name, or no longer held by us. */
  async function reread(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    try {
      const now = await client.get<Pod>(pathOf(pod), { signal });
      return now.metadata?.uid === pod.metadata?.uid && carriesGate(now) ? now : undefined;
    } catch (error) {
      if (isCode(error, 'not-found')) return undefined;
      throw error;
    }
  }

  /** Somebody between us and the API server may say so of a pod that is there, and it would wait for ever. */
  async function goneUnlessThere(pod: Pod, error: KubeError, signal: AbortSignal): Promise<Opened> {
    if ((await reread(pod, signal)) !== undefined) throw error;
    return { kind: 'gone' };
  }

  async function openOnly(pod: Pod, why: string, signal: AbortSignal): Promise<Opened> {
    let current = pod;
    for (let tries = 1; ; tries += 1) {
      try {
        await write(current, ungatedPod(current), signal);
        return { kind: 'gate-only', pod: current, why };
      } catch (error) {
        if (isCode(error, 'not-found')) return goneUnlessThere(current, error, signal);
        if (!(isCode(error, 'conflict') || isCode(error, 'invalid')) || tries === maxTries) throw error;
        onConflict();
        const now = await reread(current, signal);
        if (now === undefined) return { kind: 'gone' };
        current = now;
      }
    }
  }

  return {
    open: async (pod, decision, again, signal) => {
      let current = { pod, decision };
      let withRecord = true;
      for (let tries = 1; ; tries += 1) {
        try {
          const patch = patchGatedPod(current.pod, current.decision, { nodesOf, withRecord });
          await write(current.pod, patch, signal);
          return { kind: 'opened', ...current };
        } catch (error) {
          if (isCode(error, 'not-found')) return goneUnlessThere(current.pod, error, signal);
          if (isCode(error, 'invalid') && withRecord && error.message.includes(noRoomForRecord)) {
            withRecord = false;
            continue;
          }
          if (isCode(error, 'invalid') && error.namesFields)
            return openOnly(current.pod, error.message, signal);
          if (!(isCode(error, 'conflict') || isCode(error, 'invalid')) || tries === maxTries) throw error;
          onConflict();
          const now = await reread(current.pod, signal);
          if (now === undefined) return { kind: 'gone' };
          // A patch that does not fit the very pod it was made for never will.
          const isSame = now.metadata?.resourceVersion === current.pod.metadata?.resourceVersion;
          if (isCode(error, 'invalid') && isSame) return openOnly(now, error.message, signal);
          const next = again(now);
          if (next === undefined) return { kind: 'changed' };
          current = { pod: now, decision: next };
        }
      }
    },
    openOnly,
  };
}

function isCode(error: unknown, code: KubeError['code']): error is KubeError {
  return error instanceof KubeError && error.code === code;
}

function pathOf({ metadata = {} }: Pod): string {
  return paths.pods(metadata.namespace ?? '', metadata.name ?? '');
}
