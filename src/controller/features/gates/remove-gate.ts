/**
 * Removes a pod's scheduling gate and sets its placement in one patch. If the API server refuses the
 * placement, only the gate is removed: an event reports a pod that may run anywhere, but a gated pod is lost.
 * After a conflict, the pod is decided again once the cache shows its change.
 */
import type { KubeClient } from '../../../kube/api/client.ts';
import { ignoring, isCode, KubeError } from '../../../kube/api/errors.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import { keys } from '../../../names/keys.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { patchGatedPod, ungatedPod } from '../../../placement/patch/patch.ts';
import { summaryOf } from '../../../placement/record/write.ts';
import { carriesGate } from '../../state/waiting-pods.ts';

/** `placed`: as decided. `gate-only`: no placement. `gone`: nothing to do. */
export type Removal =
  | { readonly kind: 'placed'; readonly pod: Pod; readonly decision: PlacementDecision }
  | { readonly kind: 'gate-only'; readonly pod: Pod; readonly why: string }
  | { readonly kind: 'gone' };

/** The error if annotations exceed 256 KiB together (apimachinery `ValidateAnnotationsSize`). */
const noRoomForRecord = 'metadata.annotations: Too long';

/** Other writers change a gated pod once or twice, not again and again. */
const maxTries = 4;

/** Sets the placement and removes the gate. @throws KubeError if trying again later can help */
export async function placePod(
  client: KubeClient,
  pod: Pod,
  decision: PlacementDecision,
  signal: AbortSignal,
  withRecord = true,
): Promise<Removal> {
  try {
    const body = patchGatedPod(pod, decision, { withRecord });
    await client.patch(pathOf(pod), { type: 'json', body }, { signal });
    return { kind: 'placed', pod, decision };
  } catch (error) {
    if (!isCode(error, 'not-found', 'invalid')) throw error;
    if (withRecord && error.message.includes(noRoomForRecord))
      return await placePod(client, pod, decision, signal, false);
    if (!error.namesFields) {
      const now = await reread(client, pod, signal);
      if (now === undefined) return { kind: 'gone' };
      // A proxy or an admission webhook may answer 404 for a pod that exists; its gate would stay for ever.
      if (error.code === 'not-found') throw error;
      // A patch that does not fit the very pod it was made for never will.
      if (now.metadata?.resourceVersion !== pod.metadata?.resourceVersion)
        throw new KubeError('conflict', error.where, error.message);
    }
    return await ungatePod(client, pod, error.message, signal);
  }
}

/** Removes the gate and changes nothing else. @param why there is no placement @throws KubeError */
export async function ungatePod(
  client: KubeClient,
  pod: Pod,
  why: string,
  signal: AbortSignal,
): Promise<Removal> {
  let now: Pod | undefined = pod;
  for (let tries = 1; now !== undefined; tries += 1) {
    try {
      await client.patch(pathOf(now), { type: 'json', body: ungatedPod(now) }, { signal });
      return { kind: 'gate-only', pod: now, why };
    } catch (error) {
      if (!isCode(error, 'not-found', 'conflict', 'invalid') || tries === maxTries) throw error;
      now = await reread(client, pod, signal);
    }
  }
  return { kind: 'gone' };
}

/** The current pod; `undefined`: gone, replaced by another one of its name, or without our gate. */
async function reread(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
  const now = await ignoring('not-found', client.get<Pod>(pathOf(pod), { signal }));
  return now && now.metadata?.uid === pod.metadata?.uid && carriesGate(now) ? now : undefined;
}

/**
 * Renews the annotation that says why the pod waits. It is for people only, so a refusal is ignored.
 * @throws KubeError if there is no answer
 */
export async function showSummary(
  client: KubeClient,
  pod: Pod,
  decision: PlacementDecision,
  signal: AbortSignal,
): Promise<void> {
  const { uid, annotations = {} } = pod.metadata ?? {};
  const summary = summaryOf(decision);
  // Without room for it, the webhook has left it out.
  if (annotations[keys.summary] === undefined || annotations[keys.summary] === summary) return;
  const body = { metadata: { uid, annotations: { [keys.summary]: summary } } };
  const patched = client.patch(pathOf(pod), { type: 'merge', body }, { signal });
  await ignoring(['not-found', 'conflict', 'invalid', 'forbidden'], patched);
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
