/** What the cache counts. */
import { counter, counts, gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';
import { factsErrorCodes } from '../facts/facts.ts';

const results = ['fresh', 'due', 'stale', 'failure', 'override', 'miss'] as const;

export const factsMetricSpecs = {
  answers: counter(
    'archwright_facts_cache_answers_total',
    'Requests to the cache. `due`: fresh, and confirmed in the background; `miss`: needs a lookup.',
    { result: results },
  ),
  lookups: counter(
    'archwright_facts_lookups_total',
    'Lookups. `request`: a pod waits; `refresh`: in the background.',
    { cause: ['request', 'refresh'] },
  ),
  failures: counter('archwright_facts_failures_total', 'Failed lookups of images.', {
    code: factsErrorCodes,
  }),
  evictions: counter('archwright_facts_evictions_total', 'Facts evicted to make room.'),
  entries: gauge('archwright_facts_entries', 'Images in the cache.'),
  bytes: gauge('archwright_facts_memory_bytes', 'Estimated memory of the cache.'),
} as const satisfies Record<string, MetricSpec>;

export type FactsMetrics = ReturnType<typeof createFactsMetrics>;

/** The counters, bound once. */
export function createFactsMetrics(metrics: Metrics) {
  const specs = factsMetricSpecs;
  const entries = metrics.gauge(specs.entries);
  const bytes = metrics.gauge(specs.bytes);
  return {
    answered: counts(metrics, specs.answers, 'result', results),
    failure: counts(metrics, specs.failures, 'code', factsErrorCodes),
    requested: metrics.counter(specs.lookups, { cause: 'request' }),
    refreshed: metrics.counter(specs.lookups, { cause: 'refresh' }),
    evicted: metrics.counter(specs.evictions),
    /** Shows how much there is, at each scrape. */
    watch: (cache: { readonly size: number; readonly bytes: number }) => {
      metrics.beforeScrape(() => {
        entries.set(cache.size);
        bytes.set(cache.bytes);
      });
    },
  };
}
