/**
 * Removes a pod's scheduling gate and sets its placement in one patch. If the API server refuses the
 * placement, only the gate is removed: an event reports a pod that may run anywhere, but a gated pod is lost.
 */
import { ignoring, isCode, type KubeError } from '../../../kube/api/errors.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import { keys } from '../../../names/keys.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { patchGatedPod, ungatedPod } from '../../../placement/patch/patch.ts';
import { summaryOf } from '../../../placement/record/write.ts';
import { carriesGate } from '../../state/waiting-pods.ts';
import type { LeaderContext } from '../../lead/feature.ts';

/** `placed`: as decided. `gate-only`: no placement. `gone`: nothing to do. `changed`: decide again later. */
export type Removal =
  | { readonly kind: 'placed'; readonly pod: Pod; readonly decision: PlacementDecision }
  | { readonly kind: 'gate-only'; readonly pod: Pod; readonly why: string }
  | { readonly kind: 'gone' }
  | { readonly kind: 'changed' };

/** The error if annotations exceed 256 KiB together (apimachinery `ValidateAnnotationsSize`). */
const noRoomForRecord = 'metadata.annotations: Too long';

/** Other writers change a gated pod once or twice, not again and again. */
const maxTries = 4;

export class GateRemover {
  readonly #leader: LeaderContext;
  readonly #onConflict: () => void;

  /** @param onConflict called for each try that failed and is followed by another one */
  constructor(leader: LeaderContext, onConflict: () => void) {
    this.#leader = leader;
    this.#onConflict = onConflict;
  }

  /**
   * Sets the placement and removes the gate.
   * @param again decides the pod as it is now; `undefined`: it has to wait
   * @throws KubeError if trying again later can help
   */
  place(
    pod: Pod,
    decision: PlacementDecision,
    again: (pod: Pod) => PlacementDecision | undefined,
    signal: AbortSignal,
  ): Promise<Removal> {
    return this.#remove({ pod, decision, why: '' }, again, signal);
  }

  /** Removes the gate and changes nothing else. @throws KubeError */
  removeOnly(pod: Pod, why: string, signal: AbortSignal): Promise<Removal> {
    return this.#remove({ pod, decision: undefined, why }, () => undefined, signal);
  }

  async #remove(
    { pod, decision, why }: { pod: Pod; decision: PlacementDecision | undefined; why: string },
    again: (pod: Pod) => PlacementDecision | undefined,
    signal: AbortSignal,
  ): Promise<Removal> {
    const { client } = this.#leader;
    let withRecord = true;
    for (let tries = 1; ; tries += 1) {
      try {
        const body = decision ? patchGatedPod(pod, decision, { withRecord }) : ungatedPod(pod);
        await client.patch(pathOf(pod), { type: 'json', body }, { signal });
        return decision ? { kind: 'placed', pod, decision } : { kind: 'gate-only', pod, why };
      } catch (error) {
        const refused = decision && isCode(error, 'invalid') ? error : undefined;
        if (refused && withRecord && refused.message.includes(noRoomForRecord)) {
          withRecord = false;
          continue;
        }
        const now = refused?.namesFields ? pod : await this.#afterFailure(error, pod, tries, signal);
        if (now === undefined) return { kind: 'gone' };
        // A patch that does not fit the very pod it was made for never will.
        if (refused && now.metadata?.resourceVersion === pod.metadata?.resourceVersion) {
          decision = undefined;
          why = refused.message;
          tries = 0;
        } else if (decision) {
          decision = again(now);
          if (decision === undefined) return { kind: 'changed' };
        }
        pod = now;
      }
    }
  }

  /**
   * Renews the annotation that says why the pod waits. It is for people only, so a refusal is ignored.
   * @throws KubeError if there is no answer
   */
  async showSummary(pod: Pod, decision: PlacementDecision, signal: AbortSignal): Promise<void> {
    const { uid, annotations = {} } = pod.metadata ?? {};
    const summary = summaryOf(decision);
    // Without room for it, the webhook has left it out.
    if (annotations[keys.summary] === undefined || annotations[keys.summary] === summary) return;
    const body = { metadata: { uid, annotations: { [keys.summary]: summary } } };
    const patched = this.#leader.client.patch(pathOf(pod), { type: 'merge', body }, { signal });
    await ignoring(['not-found', 'conflict', 'invalid', 'forbidden'], patched);
  }

  /** The pod for the next try; `undefined`: nothing left to do. @throws the error if no try can help */
  async #afterFailure(
    error: unknown,
    pod: Pod,
    tries: number,
    signal: AbortSignal,
  ): Promise<Pod | undefined> {
    // A proxy or an admission webhook may answer 404 for a pod that exists; its gate would stay for ever.
    if (isCode(error, 'not-found')) {
      if ((await this.#reread(pod, signal)) !== undefined) throw error;
      return undefined;
    }
    if (!isCode(error, 'conflict', 'invalid') || tries === maxTries) throw error;
    this.#onConflict();
    return await this.#reread(pod, signal);
  }

  /** The current pod; `undefined`: gone, replaced by another one of its name, or without our gate. */
  async #reread(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const now = await ignoring('not-found', this.#leader.client.get<Pod>(pathOf(pod), { signal }));
    return now && now.metadata?.uid === pod.metadata?.uid && carriesGate(now) ? now : undefined;
  }
}

function pathOf({ metadata = {} }: Pod): string {
  return paths.pods(metadata.namespace ?? '', metadata.name ?? '');
}

/**
 * Whether the API server understood the patch and refuses it. Other admission webhooks and policies choose
 * the status of their refusals; the API server's default is 400.
 */
export function isRefusal({ code, temporary }: KubeError): boolean {
  return !temporary && code !== 'conflict' && code !== 'unauthorized';
}
