import { factsErrorCodes } from '../../../images/facts/facts.ts';
import { outcomes } from '../../../placement/decision.ts';
import {
  counter,
  gauge,
  histogram,
  itemCounts,
  type Metrics,
  type MetricSpec,
} from '../../../telemetry/metrics.ts';

/**
 * `new`: no lookup yet. `lookup`: no answer yet. `refused`: decided, but the API server refuses the change.
 * Otherwise why the first unknown image is unknown.
 */
const waitingReasons = ['new', 'lookup', 'refused', ...factsErrorCodes] as const;
export type WaitingReason = (typeof waitingReasons)[number];

/** Upper bounds of ages, milliseconds. */
export const ageBuckets = { '10s': 10_000, '1m': 60_000, '5m': 300_000, older: Infinity } as const;
export type AgeBucket = keyof typeof ageBuckets;

const gatedPods = gauge('archwright_gated_pods', 'Gated pods, by age (below the bound) and reason.', {
  age: Object.keys(ageBuckets),
  reason: waitingReasons,
});

/** `gate-only`: the gate was removed without a placement, because that was refused. */
const gateOutcomes = [...outcomes, 'gate-only'] as const;

const gateDecisions = counter(
  'archwright_gate_decisions_total',
  'Decisions on gated pods; a denial counts as `pending`.',
  { outcome: gateOutcomes },
);

const gatedSeconds = histogram(
  'archwright_gated_duration_seconds',
  'Time from a pod’s creation until its gate is removed.',
  // Creation times are whole seconds. Most end at a registry's answer, the last at maxGateDuration (300 s).
  [1, 2, 3, 5, 10, 20, 40, 60, 120, 300, 330, 600],
);

const gateFailureReasons = ['conflict', 'refused', 'unavailable', 'fault'] as const;

const gateFailures = counter(
  'archwright_gate_failures_total',
  'Failed attempts to remove a gate; `conflict`: the pod had changed, `fault`: a defect.',
  { reason: gateFailureReasons },
);

export const gateMetrics: readonly MetricSpec[] = [gatedPods, gateDecisions, gatedSeconds, gateFailures];

export type GateMeters = ReturnType<typeof bindGateMetrics>;

/** @param waiting the labels of each pod in `gatedPods` */
export function bindGateMetrics(
  metrics: Metrics,
  waiting: () => Iterable<{ readonly age: AgeBucket; readonly reason: WaitingReason }>,
) {
  const seconds = metrics.histogram(gatedSeconds);
  const show = itemCounts(metrics, gatedPods);
  metrics.beforeScrape(() => show(waiting(), (labels) => [labels]));
  return {
    removed: (outcome: (typeof gateOutcomes)[number], waitedMs: number): void => {
      metrics.counter(gateDecisions, { outcome }).inc();
      seconds.observe(waitedMs / 1000);
    },
    failed: (reason: (typeof gateFailureReasons)[number]): void =>
      metrics.counter(gateFailures, { reason }).inc(),
  };
}
