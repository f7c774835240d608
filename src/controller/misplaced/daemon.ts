/**
 * Pods of DaemonSets. Their controller creates the next one on the same node, so they are never evicted; only the template keeps them off a
 * node. The webhook places a template when it is applied. A template that was applied before archwright was installed, or while the
 * webhook was down, makes pods for every new node. Placing it restarts all of its pods, so a person has to decide that.
 */
import type { PodTemplate } from '../../kube/api/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { PlacementInput } from '../../placement/decision.ts';

/**
 * What to report about a DaemonSet with a pod on a node that cannot run it.
 * @param architecture of the node
 * @returns `unplaced`: if it is applied again, its template keeps pods off such nodes; `undefined`: the webhook skips it, it is rolling
 *   out already, or that is not certain
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
