/**
 * What blocks a taint, and events about it:
 *
 * - A pod to which the API server refuses the toleration (`tolerate-pods.ts`).
 * - A DaemonSet with a ready pod on such a node and a template that does not tolerate the taint: the pod
 *   would run on, without a successor. A person has to restart the DaemonSet, because all its pods restart;
 *   then the webhook adds the toleration. Without a readable template (right, API group), the pods decide.
 * - A pod that the webhook skips (excluded namespace, placement disabled): its successor gets no toleration,
 *   and waits forever if no other node takes it (taints everywhere, or its node selector).
 */
import { createYielder } from '../../../async/concurrently.ts';
import type { ObjectReference } from '../../../kube/events/events.ts';
import type { Taint } from '../../../kube/api/objects.ts';
import { printable } from '../../../names/printable.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { choosing, takesPods, tolerates, letsIn } from '../../pods/chosen-nodes.ts';
import {
  daemonSetApiVersion,
  daemonTemplateOf,
  isDaemon,
  podReference,
  referenceOf,
} from '../../pods/workload.ts';
import { Reporter } from '../../report/reporter.ts';
import type { ArchitecturePlan } from './plan.ts';

export interface Blocker {
  readonly reason: 'pods' | 'daemonsets' | 'no-other-node';
  readonly taint: Taint;
  readonly about: ObjectReference;
  /** Why a pod could not be given the toleration. */
  readonly why?: string;
  /** False: nodes have the taint already, so that it does not wait for the pod. */
  readonly isBlocked: boolean;
}

/**
 * The DaemonSets that block the taint of an architecture.
 * @param pods on its nodes, without toleration
 * @throws KubeError
 */
export async function blockingDaemonSets(
  { taint, waiting }: ArchitecturePlan,
  pods: readonly RunningPod[],
  leader: LeaderContext,
): Promise<readonly Blocker[]> {
  const names = new Set(waiting.map(({ name }) => name));
  const daemons = pods.filter(isDaemon).filter(({ node, ready }) => ready && names.has(node));
  const blocking: Blocker[] = [];
  for (const each of new Map(daemons.map((pod) => [pod.owner.uid, pod])).values()) {
    const template = await daemonTemplateOf(each, leader);
    if (template === 'gone') continue;
    if (template === 'unknown' || !tolerates(template.spec.tolerations ?? [], taint))
      blocking.push({
        reason: 'daemonsets',
        taint,
        about: referenceOf(each.namespace, each.owner),
        isBlocked: true,
      });
  }
  return blocking;
}

/**
 * Pods with successors that find no node once every chosen architecture is tainted.
 * @param skipped pods on its nodes, without toleration
 * @param others nodes that stay without taint
 */
export async function strandedPods(
  { taint }: ArchitecturePlan,
  skipped: readonly RunningPod[],
  others: readonly CachedNode[],
  signal: AbortSignal,
): Promise<readonly Blocker[]> {
  const turn = createYielder(signal);
  const open = others.filter(takesPods);
  const seen = new Set<string>();
  const stranded: Blocker[] = [];
  for (const pod of skipped) {
    const { owner, ready, tolerations, nodeChoice } = pod;
    if (owner === undefined || !ready || seen.has(owner.uid)) continue;
    seen.add(owner.uid);
    const isChosen = nodeChoice ? choosing(nodeChoice) : () => true;
    if (!open.some((node) => letsIn(node, tolerations) && isChosen(node)))
      stranded.push({ reason: 'no-other-node', taint, about: podReference(pod), isBlocked: true });
    await turn();
  }
  return stranded;
}

/** The first ones are enough. */
const maxReported = 50;

/** @returns reports blocked taints and refused tolerations: an event and a log line, repeated while they last */
export function createTaintEvents(leader: LeaderContext) {
  const { events, log } = leader;
  const reporter = new Reporter(leader);
  return (blockers: readonly Blocker[]): void => {
    const troubles = blockers.slice(0, maxReported).map((blocker) => {
      const { key, value = '' } = blocker.taint;
      return [`${blocker.reason} ${blocker.about.uid ?? ''} ${key} ${value}`, blocker] as const;
    });
    for (const blocker of reporter.dueOf(new Map(troubles))) {
      const { about, isBlocked } = blocker;
      const message = messageOf(blocker);
      const reason = isBlocked ? 'TaintHeldBack' : 'TolerationRefused';
      events.record(about, { type: 'Warning', reason, message });
      const { kind, namespace, name } = about;
      const what = isBlocked ? 'a taint is blocked' : 'a pod could not be given the toleration of a taint';
      log.warn({ kind, namespace, name, reason: blocker.reason, message }, what);
    }
  };
}

function messageOf({ reason, taint, about, why = '', isBlocked }: Blocker): string {
  const { key, value = '', effect } = taint;
  const blocked = `The nodes of ${value} do not get their taint ${key}=${value}:${effect}`;
  if (reason === 'pods') {
    const advice = 'Delete it, or label it arch.example/placement=disabled.';
    const refusal = `this pod could not be given the toleration: ${printable(why, 300)}`;
    if (isBlocked) return `${blocked}: ${refusal}. ${advice}`;
    return (
      `The nodes of ${value} have their taint ${key}=${value}:${effect}, but ${refusal}. It keeps running, but autoscalers and ` +
      `deschedulers may find it in the wrong place. ${advice}`
    );
  }
  if (reason === 'daemonsets') {
    const message = `${blocked}: this DaemonSet runs there and does not tolerate it, so no new pod of it would start there.`;
    if (about.apiVersion !== daemonSetApiVersion) return `${message} Add the toleration to its template.`;
    return (
      `${message} Restart it (kubectl rollout restart), then archwright adds the toleration. ` +
      'If archwright skips the namespace, add the toleration yourself.'
    );
  }
  return (
    `${blocked}: archwright skips this pod, so its successor would not tolerate the taint, and no other node would take it. ` +
    "Add the toleration to its workload's template, or leave an architecture without taint."
  );
}
