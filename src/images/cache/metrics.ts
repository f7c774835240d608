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
  failures: counter('archwright_facts_failures_total', 'Failed lookups of images.', {
    code: factsErrorCodes,
  }),
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
    /** Shows how much there is, at each scrape. */
    watch: (cache: { readonly size: number; readonly bytes: number }) => {
      metrics.beforeScrape(() => {
        entries.set(cache.size);
        bytes.set(cache.bytes);
      });
    },
  };
}
