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

/** What is left of the requests that a registry allows in a window. */
export interface RequestLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Until the window ends and nothing is known any more. */
  readonly endsInMs: number;
}

/** A number of at most 9 digits, and the window in seconds. */
const form = /^(\d{1,9})(?:;w=(\d{1,9}))?$/;
/** Docker Hub's window is 6 hours. */
export const maxWindowMs = 86_400_000;

export class RegistryLimits {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By registry, until its window ends. */
  readonly #last = new Map<string, Omit<RequestLimit, 'endsInMs'> & { readonly end: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>, metrics?: Metrics) {
    this.#clock = clock;
    metrics?.beforeScrape(() => {
      for (const registry of registries) {
        const { limit = 0, remaining = 0 } = this.current(registry) ?? {};
        metrics.gauge(specs.limit, { registry }).set(limit);
        metrics.gauge(specs.remaining, { registry }).set(remaining);
      }
    });
  }

  /** @returns `undefined` if it did not say so in the last window */
  current(registry: (typeof registries)[number]): RequestLimit | undefined {
    const { limit, remaining, end } = this.#last.get(registry) ?? { limit: 0, remaining: 0, end: 0 };
    const endsInMs = Math.ceil(end - this.#clock.monotonic());
    return endsInMs > 0 ? { limit, remaining, endsInMs } : undefined;
  }

  /** @param namespace the registry, which a mirror may stand for */
  answered(namespace: string, headers: HttpResponse['headers']): void {
    const [, limit, window = 0] = form.exec(single(headers['ratelimit-limit'])) ?? [];
    const [, remaining] = form.exec(single(headers['ratelimit-remaining'])) ?? [];
    if (limit === undefined || remaining === undefined || Number(remaining) > Number(limit)) return;
    const registry = registries.find((each) => each === namespace) ?? 'other';
    const windowMs = Math.min(Number(window) * 1000 || maxWindowMs, maxWindowMs);
    const end = this.#clock.monotonic() + windowMs;
    this.#last.set(registry, { limit: Number(limit), remaining: Number(remaining), end });
  }
}

function single(values: readonly string[] | undefined): string {
  return values?.length === 1 ? (values[0] ?? '') : '';
}
