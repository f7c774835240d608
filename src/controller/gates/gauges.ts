/** Counting of what happens to gates. */
import type { Metrics } from '../../telemetry/metrics.ts';
import {
  ageBuckets,
  gateDecisions,
  gatedPods,
  gatedSeconds,
  gateFailures,
  waitingReasons,
  gateFailureReasons,
  gateOutcomes,
} from './metrics.ts';
import type { WaitingPods } from './waiting.ts';

export interface GateMeters {
  opened(outcome: (typeof gateOutcomes)[number], waitedMs: number): void;
  failed(reason: (typeof gateFailureReasons)[number]): void;
  /** From here on nothing waits, as far as this replica knows. */
  close(): void;
}

export function bindGateMetrics(metrics: Metrics, waiting: WaitingPods): GateMeters {
  const seconds = metrics.histogram(gatedSeconds);
  const outcomes = new Map(
    gateOutcomes.map((outcome) => [outcome, metrics.counter(gateDecisions, { outcome })] as const),
  );
  const failures = new Map(
    gateFailureReasons.map((reason) => [reason, metrics.counter(gateFailures, { reason })] as const),
  );
  let current: WaitingPods | undefined = waiting;
  const levels = Object.keys(ageBuckets).flatMap((age) =>
    waitingReasons.map((reason) => ({
      key: `${age} ${reason}`,
      level: metrics.gauge(gatedPods, { age, reason }),
    })),
  );

  function update(): void {
    const counts = current?.counts();
    if (counts) for (const { key, level } of levels) level.set(counts.get(key) ?? 0);
  }
  metrics.beforeScrape(update);

  return {
    opened: (outcome, waitedMs) => {
      outcomes.get(outcome)?.inc();
      seconds.observe(waitedMs / 1000);
    },
    failed: (reason) => failures.get(reason)?.inc(),
    close: () => {
      current = undefined;
      for (const { level } of levels) level.set(0);
    },
  };
}
