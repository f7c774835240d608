/** What the cache counts, beside its size. */
import { counter, counts, gauge, type Metrics } from '../../telemetry/metrics.ts';
import { factsErrorCodes } from '../facts/facts.ts';

const failures = counter('archwright_facts_failures_total', 'Failed lookups of images.', {
  code: factsErrorCodes,
});
const entries = gauge('archwright_facts_entries', 'Images in the cache.');
const bytes = gauge('archwright_facts_memory_bytes', 'Estimated memory of the cache.');

export const factsMetrics = [failures, entries, bytes];

export type CountFailure = ReturnType<typeof bindFactsMetrics>;

export function bindFactsMetrics(metrics: Metrics, cache: { readonly size: number; readonly bytes: number }) {
  metrics.beforeScrape(() => {
    metrics.gauge(entries).set(cache.size);
    metrics.gauge(bytes).set(cache.bytes);
  });
  return counts(metrics, failures, 'code', factsErrorCodes);
}
