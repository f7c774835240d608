/**
 * Pods of DaemonSets. Their controller makes the next one for the same node, so none is evicted; what keeps them off a node is
 * the template. The webhook places that when it is applied, so one that was applied before archwright came, or while the
 * webhook was away, goes on making pods for every new node. Placing it restarts all of its pods, which is for a person to
 * choose: they are told.
 */
import type { PodTemplate } from '../../kube/api/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { PlacementInput } from '../../placement/decision.ts';

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
