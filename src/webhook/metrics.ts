import { outcomes, skipReasons } from '../placement/decision.ts';
import { factsErrorCodes } from '../images/facts/facts.ts';
import { counter, counts, histogram, type Metrics, type MetricSpec } from '../telemetry/metrics.ts';

const admissionKinds = [
  'Pod',
  'DaemonSet',
  'Deployment',
  'StatefulSet',
  'ReplicaSet',
  'Job',
  'CronJob',
  'other',
] as const;
export type AdmissionKind = (typeof admissionKinds)[number];

/** `ignored`: it needs no decision. `fault`: this program failed, and the object was let through. */
const admissionOutcomes = [...outcomes, 'ignored', 'fault'] as const;
type AdmissionOutcome = (typeof admissionOutcomes)[number];

/** `path`: not that of the API server, or a wrong token. `overloaded`: too many bytes at the same time. */
const badRequestReasons = [
  'path',
  'method',
  'no-certificate',
  'overloaded',
  'body',
  'too-large',
  'content-type',
  'not-json',
  'not-a-review',
] as const;
export type BadRequestReason = (typeof badRequestReasons)[number];

const unknownCodes = ['unknown', ...factsErrorCodes] as const;

const specs = {
  admissions: counter(
    'archwright_admissions_total',
    'Admission reviews. A template counts with the outcome that its pods would get; `fault`: admitted unchanged because of a failure.',
    { kind: admissionKinds, outcome: admissionOutcomes },
  ),
  admissionSeconds: histogram(
    'archwright_admission_duration_seconds',
    'Time from the end of the request body to the answer.',
    // Warm answers take tens of microseconds, waits at most inlineBudget (150 ms); an API server waits 30 s.
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 5],
  ),
  skippedPods: counter('archwright_admission_skipped_total', 'Skipped pods and templates.', {
    reason: skipReasons,
  }),
  badRequests: counter(
    'archwright_admission_bad_requests_total',
    'Refused requests: not a review of the API server, or too little memory.',
    { reason: badRequestReasons },
  ),
  admissionWarnings: counter('archwright_admission_warnings_total', 'Warnings for people who apply objects.'),
  unknownImages: counter(
    'archwright_admission_unknown_images_total',
    'Images that were unknown when the answer was due.',
    { code: unknownCodes },
  ),
  inlineWaits: counter(
    'archwright_admission_inline_waits_total',
    'Admissions that waited for a lookup; `expired`: inlineBudget.',
    { outcome: ['answered', 'expired'] },
  ),
  unpullableNodes: counter(
    'archwright_admission_unpullable_nodes_total',
    'Pods with an image that some nodes cannot pull; `kept`: rule pullable-nodes-left-out.',
    { outcome: ['excluded', 'kept'] },
  ),
  widenedPods: counter(
    'archwright_admission_widened_total',
    'Pods whose own architectures were widened (constraints).',
  ),
} as const satisfies Record<string, MetricSpec>;

export const webhookMetrics: readonly MetricSpec[] = Object.values(specs);

export type AdmissionCounters = ReturnType<typeof bindCounters>;

/** Declares the metrics of admissions; each is there, at 0, from the start. */
export function bindCounters(metrics: Metrics) {
  const admitted = new Map(
    admissionKinds.map((kind) => [
      kind,
      counts<AdmissionOutcome>(metrics, specs.admissions, 'outcome', admissionOutcomes, { kind }),
    ]),
  );
  return {
    admitted: (kind: AdmissionKind, outcome: AdmissionOutcome) => admitted.get(kind)?.(outcome),
    skipped: counts<string>(metrics, specs.skippedPods, 'reason', skipReasons),
    unknown: counts<string>(metrics, specs.unknownImages, 'code', unknownCodes),
    refused: counts(metrics, specs.badRequests, 'reason', badRequestReasons),
    seconds: metrics.histogram(specs.admissionSeconds),
    warnings: metrics.counter(specs.admissionWarnings),
    waited: counts(metrics, specs.inlineWaits, 'outcome', ['answered', 'expired']),
    unpullable: counts(metrics, specs.unpullableNodes, 'outcome', ['excluded', 'kept']),
    widened: metrics.counter(specs.widenedPods),
  };
}
