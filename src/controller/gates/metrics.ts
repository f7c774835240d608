/** Metrics of the gates. */
import { factsErrorCodes } from '../../images/facts/facts.ts';
import { outcomes } from '../../placement/decision.ts';
import type { MetricSpec } from '../../telemetry/metrics.ts';

/** `new`: nothing was asked yet. `asking`: no answer so far. Otherwise what inspection said of the first unknown image. */
export const waitingReasons = ['new', 'asking', 'unknown', ...factsErrorCodes] as const;
export type WaitingReason = (typeof waitingReasons)[number];

/** Upper bounds of ages, milliseconds. */
export const ageBuckets = { '10s': 10_000, '1m': 60_000, '5m': 300_000, older: Infinity } as const;
export type AgeBucket = keyof typeof ageBuckets;

export const gatedPods: MetricSpec = {
  name: 'archwright_gated_pods',
  type: 'gauge',
  help: 'Pods that wait behind the scheduling gate, by age (below the bound) and by what they wait for.',
  labels: { age: Object.keys(ageBuckets), reason: waitingReasons },
};

/** `gate-only`: the gate was taken away without a placement, because that was refused. */
export const gateOutcomes = [...outcomes, 'gate-only'] as const;

export const gateDecisions: MetricSpec = {
  name: 'archwright_gate_decisions_total',
  type: 'counter',
  help: 'Gated pods that were decided, by outcome; a denial counts as `pending`, since the pod exists.',
  labels: { outcome: gateOutcomes },
};

export const gatedSeconds: MetricSpec = {
  name: 'archwright_gated_duration_seconds',
  type: 'histogram',
  help: 'Time from the creation of a gated pod until its gate was taken away, in seconds.',
  // Creation times have whole seconds. The usual end is an answer of a registry, the last one is maxGateDuration (300 s).
  buckets: [1, 2, 3, 5, 10, 20, 40, 60, 120, 300, 330, 600],
};

export const gateFailureReasons = ['conflict', 'refused', 'unavailable', 'fault'] as const;

export const gateFailures: MetricSpec = {
  name: 'archwright_gate_failures_total',
  type: 'counter',
  help: 'Tries to open a gate that failed: the pod had changed meanwhile, the API server failed or refused, or a fault of ours.',
  labels: { reason: gateFailureReasons },
};

export const gateMetrics: readonly MetricSpec[] = [gatedPods, gateDecisions, gatedSeconds, gateFailures];
