/** Counts what happens to gates. */
import type { Metrics } from '../../telemetry/metrics.ts';
import {
  ageBuckets,
  gateDecisions,
  gatedPods,
  gatedSeconds,
  gateFailures,
  waitingReasons,
  type gateFailureReasons,
  type gateOutcomes,
} from './metrics.ts';
import type { WaitingPods } from './waiting.ts';

export interface GateMeters {
  removed(outcome: (typeof gateOutcomes)[number], waitedMs: number): void;
  failed(reason: (typeof gateFailureReasons)[number]): void;
  /** This replica knows of no waiting pods any more. */
  close(): void;
}

export function bindGateMetrics(metrics: Metrics, waiting: WaitingPods): GateMeters {
  const seconds = metrics.histogram(gatedSeconds);
  const gauges = Object.keys(ageBuckets).flatMap((age) =>
    waitingReasons.map((reason) => ({
      key: `${age} ${reason}`,
      gauge: metrics.gauge(gatedPods, { age, reason }),
    })),
  );
  const stopUpdates = metrics.beforeScrape(() => {
    const counts = waiting.counts();
    for (const { key, gauge } of gauges) gauge.set(counts.get(key) ?? 0);
  });
  return {
    removed: (outcome, waitedMs) => {
      metrics.counter(gateDecisions, { outcome }).inc();
      seconds.observe(waitedMs / 1000);
    },
    failed: (reason) => metrics.counter(gateFailures, { reason }).inc(),
    close: () => {
      stopUpdates();
      for (const { gauge } of gauges) gauge.set(0);
    },
  };
}
