/** Metrics of taints, and events about what blocks them. */
import type { ObjectReference } from '../../../kube/events/events.ts';
import type { Taint } from '../../../kube/api/objects.ts';
import { printable } from '../../../names/printable.ts';
import { gauge, itemCounts, type Metrics, type MetricSpec } from '../../../telemetry/metrics.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { Reporter } from '../../report/reporter.ts';
import { daemonSetApiVersion, podReference, referenceOf } from '../../pods/workload.ts';
import type { BlockingDaemonSet } from './blockers.ts';

const taintNodes = gauge('archwright_taint_nodes', 'Nodes of the architectures in taintArchitectures.', {
  state: ['tainted', 'waiting'],
});

const taintPodsWaiting = gauge(
  'archwright_taint_pods_waiting',
  'Running pods on nodes of taintArchitectures without the toleration.',
);

const taintBlockers = gauge(
  'archwright_taint_blockers',
  'Objects that hold taints back: pods that refuse the toleration, DaemonSets without it, pods that fit no other node.',
  { reason: ['pods', 'daemonsets', 'no-other-node'] },
);

export const taintMetrics: readonly MetricSpec[] = [taintNodes, taintPodsWaiting, taintBlockers];

export type TaintGauges = ReturnType<typeof taintGauges>;

export function taintGauges(metrics: Metrics) {
  return {
    tainted: metrics.gauge(taintNodes, { state: 'tainted' }),
    waiting: metrics.gauge(taintNodes, { state: 'waiting' }),
    podsWaiting: metrics.gauge(taintPodsWaiting),
    showBlockers: itemCounts(metrics, taintBlockers),
  };
}

export type Blocker =
  | {
      readonly reason: 'pods';
      readonly taint: Taint;
      readonly pod: RunningPod;
      readonly why: string;
      /** Whether nodes have the taint already, so that it does not wait for the pod. */
      readonly established: boolean;
    }
  | { readonly reason: 'daemonsets'; readonly taint: Taint; readonly daemonSet: BlockingDaemonSet }
  | { readonly reason: 'no-other-node'; readonly taint: Taint; readonly pod: RunningPod };

export type RefusedPod = Extract<Blocker, { reason: 'pods' }>;

/** The first ones are enough. */
const maxReported = 50;

/** @returns reports blocked taints and refused tolerations: an event and a log line, repeated while they last */
export function createTaintEvents(leader: LeaderContext) {
  const { events, log } = leader;
  const reporter = new Reporter(leader);
  return (blockers: readonly Blocker[]): void => {
    const troubles = blockers.slice(0, maxReported).map((blocker) => {
      const about = objectOf(blocker);
      const { key, value = '' } = blocker.taint;
      return [`${blocker.reason} ${about.uid ?? ''} ${key} ${value}`, { blocker, about }] as const;
    });
    for (const { blocker, about } of reporter.dueOf(new Map(troubles))) {
      const message = messageOf(blocker);
      const isBlocked = blocker.reason !== 'pods' || !blocker.established;
      const reason = isBlocked ? 'TaintHeldBack' : 'TolerationRefused';
      events.record(about, { type: 'Warning', reason, message });
      const { kind, namespace, name } = about;
      const what = isBlocked ? 'a taint is blocked' : 'a pod could not be given the toleration of a taint';
      log.warn({ kind, namespace, name, reason: blocker.reason, message }, what);
    }
  };
}

function objectOf(blocker: Blocker): ObjectReference {
  if (blocker.reason === 'daemonsets')
    return referenceOf(blocker.daemonSet.namespace, blocker.daemonSet.owner);
  return podReference(blocker.pod);
}

function messageOf(blocker: Blocker): string {
  const { key, value = '', effect } = blocker.taint;
  const blocked = `The nodes of ${value} do not get their taint ${key}=${value}:${effect}`;
  if (blocker.reason === 'pods') {
    const advice = 'Delete it, or label it arch.example/placement=disabled.';
    const why = `this pod could not be given the toleration: ${printable(blocker.why, 300)}`;
    if (!blocker.established) return `${blocked}: ${why}. ${advice}`;
    return (
      `The nodes of ${value} have their taint ${key}=${value}:${effect}, but ${why}. It keeps running, but autoscalers and ` +
      `deschedulers may find it in the wrong place. ${advice}`
    );
  }
  if (blocker.reason === 'daemonsets') {
    const message = `${blocked}: this DaemonSet runs there and does not tolerate it, so no new pod of it would start there.`;
    if (blocker.daemonSet.owner.apiVersion !== daemonSetApiVersion)
      return `${message} Add the toleration to its template.`;
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
