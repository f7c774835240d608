import { gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';

const taintNodes = gauge(
  'archwright_taint_nodes',
  'Nodes of the architectures in taintArchitectures: those that have their taint, and those that wait for it.',
  { state: ['tainted', 'waiting'] },
);

const taintPodsWaiting = gauge(
  'archwright_taint_pods_waiting',
  'Running pods on nodes of the architectures in taintArchitectures that have no toleration of the taint yet.',
);

const blockerReasons = ['pods', 'daemonsets', 'no-other-node'] as const;

const taintBlockers = gauge(
  'archwright_taint_blockers',
  'What keeps nodes from getting their taint, by reason: pods that could not be given their toleration, DaemonSets that ' +
    'do not tolerate it, pods that would find no other node.',
  { reason: blockerReasons },
);

export const taintMetrics: readonly MetricSpec[] = [taintNodes, taintPodsWaiting, taintBlockers];

export type TaintGauges = ReturnType<typeof taintGauges>;

export function taintGauges(metrics: Metrics) {
  return {
    tainted: metrics.gauge(taintNodes, { state: 'tainted' }),
    waiting: metrics.gauge(taintNodes, { state: 'waiting' }),
    podsWaiting: metrics.gauge(taintPodsWaiting),
    blockers: new Map(blockerReasons.map((reason) => [reason, metrics.gauge(taintBlockers, { reason })])),
  };
}
