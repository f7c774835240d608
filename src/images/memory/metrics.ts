/** What memory counts. The words here are the ones of `docs/reference/metrics.md`. */
import { counter, counts, gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';
import { factsErrorCodes } from '../facts/facts.ts';

/** What a look into memory gave. */
const recallResults = ['fresh', 'due', 'stale', 'failure', 'override', 'miss'] as const;
export type RecallResult = (typeof recallResults)[number];

export const factsMetricSpecs = {
  recalls: counter('archwright_facts_recalls_total', 'Recalls from memory. `due`: for revalidation.', {
    result: recallResults,
  }),
  inspections: counter(
    'archwright_facts_inspections_total',
    'Lookups. `request`: a pod waits; `joined`: the same lookup is in flight.',
    { cause: ['request', 'revalidation', 'joined'] },
  ),
  failures: counter('archwright_facts_failures_total', 'Failed lookups of images.', {
    code: factsErrorCodes,
  }),
  evictions: counter('archwright_facts_evictions_total', 'Facts evicted to make room.'),
  inFlight: gauge('archwright_facts_inspections_in_flight', 'Lookups in flight.'),
  entries: gauge('archwright_facts_entries', 'Images whose facts are in memory.'),
  bytes: gauge('archwright_facts_memory_bytes', 'Estimated memory of all facts and failures.'),
} as const satisfies Record<string, MetricSpec>;

export type FactsMetrics = ReturnType<typeof createFactsMetrics>;

/** The counters, bound once. */
export function createFactsMetrics(metrics: Metrics) {
  const specs = factsMetricSpecs;
  const inFlight = metrics.gauge(specs.inFlight);
  const entries = metrics.gauge(specs.entries);
  const bytes = metrics.gauge(specs.bytes);
  return {
    recall: counts(metrics, specs.recalls, 'result', recallResults),
    failure: counts(metrics, specs.failures, 'code', factsErrorCodes),
    requested: metrics.counter(specs.inspections, { cause: 'request' }),
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
