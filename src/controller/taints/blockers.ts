/**
 * Who would lose a node by a taint, so that it is held back:
 *
 * - A DaemonSet with a ready pod on such a node whose template does not tolerate the taint: its pod would run on, and no
 *   new one would start there after it. Its template is not for us to change, since that restarts all of its pods at a
 *   time of our choosing; a restart by a person adds the toleration, because the template passes the webhook then. One
 *   whose pods are not ready there, as on an architecture that its image lacks, is what the taint is meant for. One whose
 *   template we may not read, such as that of another API group with the same name, is judged by its pods.
 * - A pod that the webhook leaves alone (excluded namespace, placement disabled): its successor gets no toleration from
 *   anybody and needs another node. Where no other node takes it, such as with `*`, or none that it chooses by labels, it
 *   would wait for ever.
 */
import type { KubeClient } from '../../kube/api/client.ts';
import type { OwnerReference } from '../../kube/api/objects.ts';
import type { CachedNode, RunningPod } from '../caches/caches.ts';
import { hasChosenNode, selectorsOf } from '../scope/chosen-nodes.ts';
import { daemonTemplateOf, isDaemon } from '../scope/daemon-set.ts';
import { isOrdinary, type ArchitecturePlan } from './plan.ts';
import { tolerates, takesPods, letsIn } from '../scope/node-room.ts';

export interface BlockingDaemonSet {
  readonly namespace: string;
  readonly owner: OwnerReference;
}

/**
 * The DaemonSets that hold the taint of an architecture back.
 * @throws KubeError
 */
export async function blockingDaemonSets(
  plan: ArchitecturePlan,
  pods: Iterable<RunningPod>,
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<readonly BlockingDaemonSet[]> {
  const waiting = new Set(plan.waiting.map(({ name }) => name));
  const found = new Map<string, BlockingDaemonSet>();
  for (const pod of pods) {
    if (!isDaemon(pod) || !waiting.has(pod.node) || !pod.ready || pod.deleting) continue;
    if (tolerates(pod.tolerations, plan.taint)) continue;
    found.set(pod.owner.uid, { namespace: pod.namespace, owner: pod.owner });
  }
  const holding: BlockingDaemonSet[] = [];
  for (const each of found.values()) {
    const template = await daemonTemplateOf(each, { client, signal });
    if (template === 'gone') continue;
    if (template === 'unknown' || !tolerates(template.spec.tolerations ?? [], plan.taint)) holding.push(each);
  }
  return holding;
}

/**
 * Pods whose successors would find no node once every chosen architecture has its taint.
 * @param isLeftAlone whether the webhook leaves a pod and its successors alone
 * @throws KubeError
 */
export async function strandedPods(
  plan: ArchitecturePlan,
  others: readonly CachedNode[],
  pods: Iterable<RunningPod>,
  isLeftAlone: (pod: RunningPod) => boolean,
  asker: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<readonly RunningPod[]> {
  const open = others.filter(takesPods);
  const seen = new Set<string>();
  const stranded: RunningPod[] = [];
  const answers = new Map<string, boolean>();

  async function hasNode({ tolerations, nodeChoice }: RunningPod): Promise<boolean> {
    if (nodeChoice === undefined) return open.some((node) => letsIn(node, tolerations));
    // Most pods of a namespace that is left out choose the same, such as an operating system.
    const question = JSON.stringify([tolerations, nodeChoice]);
    const known = answers.get(question);
    if (known !== undefined) return known;
    const nodes = new Set(open.filter((node) => letsIn(node, tolerations)).map(({ name }) => name));
    const answer = nodes.size > 0 && (await hasChosenNode(nodes, selectorsOf(nodeChoice), asker));
    answers.set(question, answer);
    return answer;
  }

  for (const pod of pods) {
    if (pod.owner === undefined || seen.has(pod.owner.uid)) continue;
    if (!plan.nodes.has(pod.node) || !isOrdinary(pod) || !pod.ready) continue;
    if (tolerates(pod.tolerations, plan.taint) || !isLeftAlone(pod)) continue;
    seen.add(pod.owner.uid);
    if (!(await hasNode(pod))) stranded.push(pod);
  }
  return stranded;
}
