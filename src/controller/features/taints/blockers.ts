/**
 * DaemonSets and pods that would lose a node by the taint, and therefore block it:
 *
 * - A DaemonSet with a ready pod on such a node and a template that does not tolerate the taint: the pod
 *   would run on, without a successor. A person has to restart the DaemonSet, because all its pods restart;
 *   then the webhook adds the toleration. Without a readable template (right, API group), the pods decide.
 * - A pod that the webhook skips (excluded namespace, placement disabled): its successor gets no toleration,
 *   and waits forever if no other node takes it (taints everywhere, or its node selector).
 */
import { createYielder } from '../../../async/concurrently.ts';
import type { OwnerReference } from '../../../kube/api/objects.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { choosing, tolerates, takesPods, letsIn } from '../../pods/chosen-nodes.ts';
import { daemonTemplateOf, isDaemon } from '../../pods/workload.ts';
import { isOrdinary, type ArchitecturePlan } from './plan.ts';

export interface BlockingDaemonSet {
  readonly namespace: string;
  readonly owner: OwnerReference;
}

/** The DaemonSets that block the taint of an architecture. @throws KubeError */
export async function blockingDaemonSets(
  plan: ArchitecturePlan,
  leader: LeaderContext,
): Promise<readonly BlockingDaemonSet[]> {
  const waiting = new Set(plan.waiting.map(({ name }) => name));
  const candidates = new Map<string, BlockingDaemonSet>();
  for (const pod of leader.caches.runningPods.values()) {
    if (!isDaemon(pod) || !waiting.has(pod.node) || !pod.ready || pod.deleting) continue;
    if (tolerates(pod.tolerations, plan.taint)) continue;
    candidates.set(pod.owner.uid, { namespace: pod.namespace, owner: pod.owner });
  }
  const blocking: BlockingDaemonSet[] = [];
  for (const each of candidates.values()) {
    const template = await daemonTemplateOf(each, leader);
    if (template === 'gone') continue;
    if (template === 'unknown' || !tolerates(template.spec.tolerations ?? [], plan.taint))
      blocking.push(each);
  }
  return blocking;
}

/**
 * Pods with successors that find no node once every chosen architecture is tainted.
 * @param others nodes that stay without taint
 */
export async function strandedPods(
  plan: ArchitecturePlan,
  others: readonly CachedNode[],
  isSkipped: (pod: RunningPod) => boolean,
  { caches, signal }: Pick<LeaderContext, 'caches' | 'signal'>,
): Promise<readonly RunningPod[]> {
  const turn = createYielder(signal);
  const open = others.filter(takesPods);
  const seen = new Set<string>();
  const stranded: RunningPod[] = [];
  for (const pod of caches.runningPods.values()) {
    if (pod.owner === undefined || seen.has(pod.owner.uid)) continue;
    if (!plan.nodes.has(pod.node) || !isOrdinary(pod) || !pod.ready) continue;
    const { tolerations, nodeChoice } = pod;
    if (tolerates(tolerations, plan.taint) || !isSkipped(pod)) continue;
    seen.add(pod.owner.uid);
    const isChosen = nodeChoice ? choosing(nodeChoice) : () => true;
    if (!open.some((node) => letsIn(node, tolerations) && isChosen(node))) stranded.push(pod);
    await turn();
  }
  return stranded;
}
