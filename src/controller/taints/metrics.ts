/** Metrics of the taints. */
import type { Gauge, Metrics, MetricSpec } from '../../telemetry/metrics.ts';

export const taintNodes: MetricSpec = {
  name: 'archwright_taint_nodes',
  type: 'gauge',
  help: 'Nodes of the architectures in taintArchitectures: those that have their taint, and those that wait for it.',
  labels: { state: ['tainted', 'waiting'] },
};

export const taintPodsWaiting: MetricSpec = {
  name: 'archwright_taint_pods_waiting',
  type: 'gauge',
  help: 'Running pods on nodes of the architectures in taintArchitectures that have no toleration of the taint yet.',
};

export const holdReasons = ['pods', 'daemonsets', 'no-other-node'] as const;
export type HoldReason = (typeof holdReasons)[number];

export const taintHolds: MetricSpec = {
  name: 'archwright_taint_holds',
  type: 'gauge',
  help:
    'What keeps nodes from getting their taint, by reason: pods that could not be given their toleration, DaemonSets that ' +
    'do not tolerate it, pods that would find no other node.',
  labels: { reason: holdReasons },
};

export const taintMetrics: readonly MetricSpec[] = [taintNodes, taintPodsWaiting, taintHolds];

export interface TaintLevels {
  readonly tainted: Gauge;
  readonly waiting: Gauge;
  readonly podsWaiting: Gauge;
  readonly holds: Readonly<Record<HoldReason, Gauge>>;
  /** Of a replica that leads no more: two must not both show the same nodes. */
  clear(): void;
}

export function taintLevels(metrics: Metrics): TaintLevels {
  const hold = (reason: HoldReason): Gauge => metrics.gauge(taintHolds, { reason });
  const levels = {
    tainted: metrics.gauge(taintNodes, { state: 'tainted' }),
    waiting: metrics.gauge(taintNodes, { state: 'waiting' }),
    podsWaiting: metrics.gauge(taintPodsWaiting),
    holds: { pods: hold('pods'), daemonsets: hold('daemonsets'), 'no-other-node': hold('no-other-node') },
  };
  return {
    ...levels,
    clear: () => {
      const { holds, ...others } = levels;
      for (const level of [...Object.values(holds), ...Object.values(others)]) level.set(0);
    },
  };
}
