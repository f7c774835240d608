/**
 * What Docker Hub says about its limit of requests: `ratelimit-limit: 100;w=21600` and `ratelimit-remaining`.
 * Headers of other registries, which the author of a pod chooses, do not count.
 */
import type { Clock } from '../../async/clock.ts';
import type { HttpResponse } from '../../http/client.ts';
import { gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';

const dockerHub = 'docker.io';

const specs = {
  limit: gauge(
    'archwright_registry_limit_requests',
    'Requests that a registry allows, by its last response. 0: it did not say so in the last window.',
    { registry: [dockerHub] },
  ),
  remaining: gauge('archwright_registry_limit_remaining_requests', 'What is left of them.', {
    registry: [dockerHub],
  }),
} satisfies Record<string, MetricSpec>;

export const registryMetrics: readonly MetricSpec[] = Object.values(specs);

/** What is left of the requests that a registry allows in a window. */
export interface RequestLimit {
  readonly limit: number;
  readonly remaining: number;
}

/** A number of at most 9 digits, and the window in seconds, up to a day. Docker Hub's is 6 hours. */
const form = /^(\d{1,9})(?:;w=(\d{1,5}))?$/;
const defaultWindowSeconds = 86_400;

export type DockerHubLimit = ReturnType<typeof createDockerHubLimit>;

export function createDockerHubLimit(clock: Clock, metrics?: Metrics) {
  let last = { limit: 0, remaining: 0, end: 0 };

  /** @returns `undefined` if it did not say so in the last window */
  function current(): RequestLimit | undefined {
    const { limit, remaining, end } = last;
    return clock.monotonic() < end ? { limit, remaining } : undefined;
  }

  metrics?.beforeScrape(() => {
    const { limit = 0, remaining = 0 } = current() ?? {};
    metrics.gauge(specs.limit, { registry: dockerHub }).set(limit);
    metrics.gauge(specs.remaining, { registry: dockerHub }).set(remaining);
  });

  /** @param namespace the registry, which a mirror may stand for */
  function answered(namespace: string, headers: HttpResponse['headers']): void {
    const [, limit, window = defaultWindowSeconds] = form.exec(single(headers['ratelimit-limit'])) ?? [];
    const [, remaining] = form.exec(single(headers['ratelimit-remaining'])) ?? [];
    if (namespace !== dockerHub || limit === undefined || remaining === undefined) return;
    if (Number(remaining) > Number(limit)) return;
    const end = clock.monotonic() + Number(window) * 1000;
    last = { limit: Number(limit), remaining: Number(remaining), end };
  }
  return { current, answered };
}

function single(values: readonly string[] | undefined): string {
  return values?.length === 1 ? (values[0] ?? '') : '';
}
