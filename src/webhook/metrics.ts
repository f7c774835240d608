import { outcomes, skipReasons } from '../placement/decision.ts';
import { factsErrorCodes } from '../images/facts/facts.ts';
import type { Metrics, MetricSpec } from '../telemetry/metrics.ts';

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

/** `ignored`: an operation or kind that needs no decision. `fault`: this program failed, the object was let through. */
const admissionOutcomes = [...outcomes, 'ignored', 'fault'] as const;
type AdmissionOutcome = (typeof admissionOutcomes)[number];

/** `path`: another path than that of the API server, or a wrong token. `overloaded`: too many bytes of bodies at the same time. */
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
  admissions: {
    name: 'archwright_admissions_total',
    type: 'counter',
    help: 'Admission reviews. A template counts what its pods would get.',
    labels: { kind: admissionKinds, outcome: admissionOutcomes },
  },
  admissionSeconds: {
    name: 'archwright_admission_duration_seconds',
    type: 'histogram',
    help: 'Time from the end of the request body to the answer.',
    // Warm answers take tens of microseconds, waits end with inlineBudget (150 ms), an API server waits 30 s at most.
    buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 5],
  },
  skippedPods: {
    name: 'archwright_admission_skipped_total',
    type: 'counter',
    help: 'Skipped pods and templates.',
    labels: { reason: skipReasons },
  },
  admissionFaults: {
    name: 'archwright_admission_faults_total',
    type: 'counter',
    help: 'Objects admitted unchanged because of a failure.',
  },
  badRequests: {
    name: 'archwright_admission_bad_requests_total',
    type: 'counter',
    help: 'Refused requests: no review of the API server, or no memory.',
    labels: { reason: badRequestReasons },
  },
  admissionWarnings: {
    name: 'archwright_admission_warnings_total',
    type: 'counter',
    help: 'Warnings for people who apply objects.',
  },
  unknownImages: {
    name: 'archwright_admission_unknown_images_total',
    type: 'counter',
    help: 'Images that were unknown when the answer was due.',
    labels: { code: unknownCodes },
  },
  inlineWaits: {
    name: 'archwright_admission_inline_waits_total',
    type: 'counter',
    help: 'Admissions that waited for a lookup; `expired`: inlineBudget.',
    labels: { outcome: ['answered', 'expired'] },
  },
  inquiryFailures: {
    name: 'archwright_admission_inquiry_failures_total',
    type: 'counter',
    help: 'Lookups that failed unexpectedly.',
  },
  unpullableNodes: {
    name: 'archwright_admission_unpullable_nodes_total',
    type: 'counter',
    help: 'Pods with an image that some nodes cannot pull; `kept`: rule pullable-nodes-left-out.',
    labels: { outcome: ['excluded', 'kept'] },
  },
  widenedPods: {
    name: 'archwright_admission_widened_total',
    type: 'counter',
    help: 'Pods whose own architectures were widened (constraints).',
  },
} as const satisfies Record<string, MetricSpec>;

export const webhookMetrics: readonly MetricSpec[] = Object.values(specs);

export type AdmissionCounters = ReturnType<typeof bindCounters>;

/** Declares the metrics of admissions; each is there, at 0, from the start. */
export function bindCounters(metrics: Metrics) {
  const bind = (values: readonly string[], spec: MetricSpec, label: string, more = {}) =>
    new Map(values.map((value) => [value, metrics.counter(spec, { ...more, [label]: value })]));
  const admitted = new Map(
    admissionKinds.map((kind) => [kind, bind(admissionOutcomes, specs.admissions, 'outcome', { kind })]),
  );
  const skipped = bind(skipReasons, specs.skippedPods, 'reason');
  const unknown = bind(unknownCodes, specs.unknownImages, 'code');
  const refused = bind(badRequestReasons, specs.badRequests, 'reason');
  return {
    admitted: (kind: AdmissionKind, outcome: AdmissionOutcome) => admitted.get(kind)?.get(outcome)?.inc(),
    skipped: (reason: string) => skipped.get(reason)?.inc(),
    unknown: (code: string) => unknown.get(code)?.inc(),
    seconds: metrics.histogram(specs.admissionSeconds),
    faults: metrics.counter(specs.admissionFaults),
    warnings: metrics.counter(specs.admissionWarnings),
    waitsAnswered: metrics.counter(specs.inlineWaits, { outcome: 'answered' }),
    waitsExpired: metrics.counter(specs.inlineWaits, { outcome: 'expired' }),
    inquiryFailures: metrics.counter(specs.inquiryFailures),
    nodesExcluded: metrics.counter(specs.unpullableNodes, { outcome: 'excluded' }),
    nodesKept: metrics.counter(specs.unpullableNodes, { outcome: 'kept' }),
    widened: metrics.counter(specs.widenedPods),
    refused: (reason: BadRequestReason) => refused.get(reason)?.inc(),
  };
}
