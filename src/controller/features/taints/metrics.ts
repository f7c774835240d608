import { gauge, itemCounts, type Metrics, type MetricSpec } from '../../../telemetry/metrics.ts';

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
