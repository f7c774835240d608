/** Metrics of the admission webhook. */
import { outcomes, skipReasons } from '../placement/decision.ts';
import type { FactsCounters } from '../cluster/metrics.ts';
import { factsErrorCodes } from '../images/facts/facts.ts';
import type { Counter, Metrics, MetricSpec, Histogram } from '../telemetry/metrics.ts';

export const admissionKinds = [
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
export const admissionOutcomes = [...outcomes, 'ignored', 'fault'] as const;
export type AdmissionOutcome = (typeof admissionOutcomes)[number];

export const badRequestReasons = ['body', 'too-large', 'content-type', 'not-json', 'not-a-review'] as const;
export type BadRequestReason = (typeof badRequestReasons)[number];

const unknownCodes = ['unknown', ...factsErrorCodes] as const;

export const admissions: MetricSpec = {
  name: 'archwright_admissions_total',
  type: 'counter',
  help: 'Admission reviews answered, by kind of object and outcome; a review of a template counts what its pods would get.',
  labels: { kind: admissionKinds, outcome: admissionOutcomes },
};

export const admissionSeconds: MetricSpec = {
  name: 'archwright_admission_duration_seconds',
  type: 'histogram',
  help: 'Time from the end of the request body to the answer, in seconds.',
  // Warm answers take tens of microseconds, waits end with inlineBudget (150 ms), an API server waits 30 s at most.
  buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 5],
};

export const skippedPods: MetricSpec = {
  name: 'archwright_admission_skipped_total',
  type: 'counter',
  help: 'Pods and templates that were skipped, by reason.',
  labels: { reason: skipReasons },
};

export const admissionFaults: MetricSpec = {
  name: 'archwright_admission_faults_total',
  type: 'counter',
  help: 'Objects that were let through unpatched because they could not be understood or this program failed.',
};

export const badRequests: MetricSpec = {
  name: 'archwright_admission_bad_requests_total',
  type: 'counter',
  help: 'Requests refused with 400, 408 or 413 because they hold no admission review, by reason.',
  labels: { reason: badRequestReasons },
};

export const admissionWarnings: MetricSpec = {
  name: 'archwright_admission_warnings_total',
  type: 'counter',
  help: 'Warnings sent to the people who applied an object.',
};

export const unknownImages: MetricSpec = {
  name: 'archwright_admission_unknown_images_total',
  type: 'counter',
  help: 'Images in admissions whose architectures were not known when the answer was due, by error code.',
  labels: { code: unknownCodes },
};

export const inlineWaits: MetricSpec = {
  name: 'archwright_admission_inline_waits_total',
  type: 'counter',
  help: 'Admissions that waited for an image to be inspected: answered in time, or the inline budget expired first.',
  labels: { outcome: ['answered', 'expired'] },
};

export const inquiryFailures: MetricSpec = {
  name: 'archwright_admission_inquiry_failures_total',
  type: 'counter',
  help: 'Inspections that ended by an unexpected error instead of an answer; the image counted as unknown.',
};

export const unpullableNodes: MetricSpec = {
  name: 'archwright_admission_unpullable_nodes_total',
  type: 'counter',
  help: 'Pods with an image that some nodes cannot pull: kept away from these nodes, or not (the rule pullable-nodes-left-out).',
  labels: { outcome: ['excluded', 'kept'] },
};

export const webhookMetrics: readonly MetricSpec[] = [
  admissions,
  admissionSeconds,
  skippedPods,
  admissionFaults,
  badRequests,
  admissionWarnings,
  unknownImages,
  inlineWaits,
  inquiryFailures,
  unpullableNodes,
];

/** The counters of the request path, bound once. */
export interface AdmissionCounters extends FactsCounters {
  admitted(kind: AdmissionKind, outcome: AdmissionOutcome): void;
  skipped(reason: string): void;
  unknown(code: string): void;
  readonly seconds: Histogram;
  readonly faults: Counter;
  readonly warnings: Counter;
  readonly nodesExcluded: Counter;
  readonly nodesKept: Counter;
  refused(reason: BadRequestReason): void;
}

/** Declares the metrics of admissions; each is there, at 0, from the start. */
export function bindCounters(metrics: Metrics): AdmissionCounters {
  const admitted = new Map(
    admissionKinds.map((kind) => [
      kind,
      bind(admissionOutcomes, (outcome) => metrics.counter(admissions, { kind, outcome })),
    ]),
  );
  const skipped = bind(skipReasons, (reason) => metrics.counter(skippedPods, { reason }));
  const unknown = bind(unknownCodes, (code) => metrics.counter(unknownImages, { code }));
  const refused = bind(badRequestReasons, (reason) => metrics.counter(badRequests, { reason }));
  return {
    admitted: (kind, outcome) => admitted.get(kind)?.get(outcome)?.inc(),
    skipped: (reason) => skipped.get(reason)?.inc(),
    unknown: (code) => unknown.get(code)?.inc(),
    seconds: metrics.histogram(admissionSeconds),
    faults: metrics.counter(admissionFaults),
    warnings: metrics.counter(admissionWarnings),
    waitsAnswered: metrics.counter(inlineWaits, { outcome: 'answered' }),
    waitsExpired: metrics.counter(inlineWaits, { outcome: 'expired' }),
    inquiryFailures: metrics.counter(inquiryFailures),
    nodesExcluded: metrics.counter(unpullableNodes, { outcome: 'excluded' }),
    nodesKept: metrics.counter(unpullableNodes, { outcome: 'kept' }),
    refused: (reason) => refused.get(reason)?.inc(),
  };
}

function bind(values: readonly string[], child: (value: string) => Counter): ReadonlyMap<string, Counter> {
  return new Map(values.map((value) => [value, child(value)]));
}
