/**
 * What registries say about their limits of requests: `ratelimit-limit: 100;w=21600` and
 * `ratelimit-remaining`, as Docker Hub sends them. The author of a pod chooses the registry, and a registry
 * its headers. So values are read strictly, and metrics name only Docker Hub: the others share one series.
 */
import type { Clock } from '../../async/clock.ts';
import type { HttpResponse } from '../../http/client.ts';
import { gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';

const registries = ['docker.io', 'other'] as const;

const specs = {
  limit: gauge(
    'archwright_registry_limit_requests',
    'Requests that a registry allows, by its last response. 0: it did not say so in the last window.',
    { registry: registries },
  ),
  remaining: gauge('archwright_registry_limit_remaining_requests', 'What is left of them.', {
    registry: registries,
  }),
} satisfies Record<string, MetricSpec>;

export const registryMetrics: readonly MetricSpec[] = Object.values(specs);

/** A number of at most 9 digits, and the window in seconds. */
const form = /^(\d{1,9})(?:;w=(\d{1,9}))?$/;
/** Docker Hub's window is 6 hours. */
const maxWindowMs = 86_400_000;

export class RegistryLimits {
  readonly #metrics: Metrics;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** When the windows end, by registry. */
  readonly #ends = new Map<string, number>();

  constructor(metrics: Metrics, clock: Pick<Clock, 'monotonic'>) {
    this.#metrics = metrics;
    this.#clock = clock;
    for (const registry of registries) this.#set(registry, 0, 0);
    metrics.beforeScrape(() => {
      for (const [registry, end] of this.#ends) if (end <= clock.monotonic()) this.#set(registry, 0, 0);
    });
  }

  /** @param namespace the registry, which a mirror may stand for */
  answered(namespace: string, headers: HttpResponse['headers']): void {
    const [, limit, window = 0] = form.exec(single(headers['ratelimit-limit'])) ?? [];
    const [, remaining] = form.exec(single(headers['ratelimit-remaining'])) ?? [];
    if (limit === undefined || remaining === undefined || Number(remaining) > Number(limit)) return;
    const registry = registries.find((each) => each === namespace) ?? 'other';
    const windowMs = Math.min(Number(window) * 1000 || maxWindowMs, maxWindowMs);
    this.#ends.set(registry, this.#clock.monotonic() + windowMs);
    this.#set(registry, Number(limit), Number(remaining));
  }

  #set(registry: string, limit: number, remaining: number): void {
    this.#metrics.gauge(specs.limit, { registry }).set(limit);
    this.#metrics.gauge(specs.remaining, { registry }).set(remaining);
  }
}

function single(values: readonly string[] | undefined): string {
  return values?.length === 1 ? (values[0] ?? '') : '';
}
