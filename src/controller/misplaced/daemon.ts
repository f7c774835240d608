/**
 * Pods of DaemonSets. Their controller makes the next one for the same node, so none is evicted; what keeps them off a node is
 * the template. The webhook places that when it is applied, so one that was applied before archwright came, or while the
 * webhook was away, goes on making pods for every new node. Placing it restarts all of its pods, which is for a person to
 * choose: they are told.
 */
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import type { KubeObject, PodTemplate } from '../../kube/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { PlacementInput } from '../../placement/decision.ts';
import type { RunningPod } from '../caches.ts';

/** The one that the webhook places; others of that name are somebody else's. */
const placedApiVersion = 'apps/v1';

interface DaemonSet extends KubeObject {
  readonly spec?: { readonly template?: PodTemplate };
}

/** Whether a pod's owner makes one for each node. */
export function isDaemon({ owner }: Pick<RunningPod, 'owner'>): boolean {
  return owner?.kind === 'DaemonSet';
}

/**
 * The template that a pod comes from.
 * @returns `undefined` where it is gone, may not be read, or is none that the webhook places
 * @throws KubeError where there is no answer
 */
export async function daemonTemplateOf(
  { namespace, owner }: RunningPod,
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<PodTemplate | undefined> {
  if (owner?.apiVersion !== placedApiVersion) return undefined;
  const path = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/daemonsets/${encodeURIComponent(owner.name)}`;
  try {
    const { metadata, spec } = await client.get<DaemonSet>(path, { signal });
    return metadata?.uid === owner.uid ? spec?.template : undefined;
  } catch (error) {
    if (error instanceof KubeError && (error.code === 'not-found' || error.code === 'forbidden'))
      return undefined;
    throw error;
  }
}

/**
 * What is to be told of a DaemonSet with a pod on a node that cannot run it.
 * @param architecture of the node
 * @returns `unplaced`: applied again, its template would keep it off such nodes; `undefined`: it is left alone, it is on its way
 *   already, or that is not sure
 */
export function daemonVerdict(
  template: PodTemplate,
  input: Pick<PlacementInput, 'namespace' | 'namespaceLabels' | 'policy' | 'facts'>,
  architecture: string,
): 'unplaced' | 'no-architecture' | undefined {
  const { outcome, required, replaces } = decide({ ...input, pod: template, template: 'DaemonSet' });
  if (outcome === 'denied' || outcome === 'pending') return 'no-architecture';
  if (outcome !== 'placed' || required === undefined || required.includes(architecture)) return undefined;
  const isPlaced = replaces?.architectures !== undefined && !replaces.architectures.includes(architecture);
  return isPlaced ? undefined : 'unplaced';
}
