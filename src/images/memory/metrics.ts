/** What memory counts. The words here are the ones of `docs/reference/metrics.md`. */
import type { Metrics, MetricSpec } from '../../telemetry/metrics.ts';
import { factsErrorCodes, type FactsErrorCode } from '../facts/facts.ts';

/** What a look into memory gave. */
const recallResults = ['fresh', 'due', 'stale', 'failure', 'override', 'miss'] as const;
export type RecallResult = (typeof recallResults)[number];

export const factsMetricSpecs = {
  recalls: {
    name: 'archwright_facts_recalls_total',
    type: 'counter',
    help: 'Recalls from memory. `due`: for revalidation.',
    labels: { result: recallResults },
  },
  inspections: {
    name: 'archwright_facts_inspections_total',
    type: 'counter',
    help: 'Lookups. `asked`: a request waits; `joined`: one is in flight.',
    labels: { cause: ['asked', 'revalidation', 'joined'] },
  },
  failures: {
    name: 'archwright_facts_failures_total',
    type: 'counter',
    help: 'Failed lookups of images.',
    labels: { code: factsErrorCodes },
  },
  evictions: {
    name: 'archwright_facts_evictions_total',
    type: 'counter',
    help: 'Facts evicted to make room.',
  },
  inFlight: {
    name: 'archwright_facts_inspections_in_flight',
    type: 'gauge',
    help: 'Lookups in flight.',
  },
  entries: { name: 'archwright_facts_entries', type: 'gauge', help: 'Images whose facts are in memory.' },
  bytes: {
    name: 'archwright_facts_memory_bytes',
    type: 'gauge',
    help: 'Estimated memory of all facts and failures.',
  },
} as const satisfies Record<string, MetricSpec>;

export type FactsMetrics = ReturnType<typeof createFactsMetrics>;

/** The counters, bound once. */
export function createFactsMetrics(metrics: Metrics) {
  const specs = factsMetricSpecs;
  const recalls = new Map(
    recallResults.map((result) => [result, metrics.counter(specs.recalls, { result })]),
  );
  const failures = new Map(factsErrorCodes.map((code) => [code, metrics.counter(specs.failures, { code })]));
  const inFlight = metrics.gauge(specs.inFlight);
  const entries = metrics.gauge(specs.entries);
  const bytes = metrics.gauge(specs.bytes);
  return {
    recall: (result: RecallResult) => recalls.get(result)?.inc(),
    failure: (code: FactsErrorCode) => failures.get(code)?.inc(),
    asked: metrics.counter(specs.inspections, { cause: 'asked' }),
    revalidated: metrics.counter(specs.inspections, { cause: 'revalidation' }),
    joined: metrics.counter(specs.inspections, { cause: 'joined' }),
    evicted: metrics.counter(specs.evictions),
    /** Shows how much there is, at each scrape. */
    watch: (
      memory: { readonly size: number; readonly bytes: number },
      inspections: { readonly size: number },
    ) => {
      metrics.beforeScrape(() => {
        inFlight.set(inspections.size);
        entries.set(memory.size);
        bytes.set(memory.bytes);
      });
    },
  };
}
