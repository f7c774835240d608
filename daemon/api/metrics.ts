/** Metrics of the agent's API. The registry client and the cache have their own. */
import { factsErrorCodes, type ImageFacts } from '../../src/images/facts/facts.ts';
import {
  counter,
  counts,
  gauge,
  histogram,
  type Metrics,
  type MetricSpec,
} from '../../src/telemetry/metrics.ts';

const requestOutcomes = ['answered', 'wrong', 'refused', 'overloaded', 'abandoned', 'failed'] as const;
export type RequestOutcome = (typeof requestOutcomes)[number];

const requests = counter('archwright_agent_requests_total', 'Requests to the agent API.', {
  method: ['GET', 'POST', 'other'],
  path: ['/v1/facts', '/v1/info', 'other'],
  outcome: requestOutcomes,
});

const resultNames = ['ok', 'stale', ...factsErrorCodes] as const;

const images = counter('archwright_agent_images_total', 'Requested images.', { result: resultNames });

const requestSeconds = histogram(
  'archwright_agent_request_duration_seconds',
  'Duration of requests for facts.',
  [0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 30],
);

const openRequests = gauge('archwright_agent_open_requests', 'Open requests for facts.');

const knownImages = gauge('archwright_agent_known_images', 'Images in the cache.');

/** Every metric of this folder, for the documentation. */
export const agentMetrics: readonly MetricSpec[] = [
  requests,
  images,
  requestSeconds,
  openRequests,
  knownImages,
];

export type AgentMeters = ReturnType<typeof bindAgentMetrics>;

/** @param levels current values, called before each scrape */
export function bindAgentMetrics(
  metrics: Metrics,
  levels: () => { readonly images: number; readonly open: number },
) {
  const counted = counts(metrics, images, 'result', resultNames);
  const durations = metrics.histogram(requestSeconds);
  const open = metrics.gauge(openRequests);
  const known = metrics.gauge(knownImages);
  metrics.beforeScrape(() => {
    const now = levels();
    open.set(now.open);
    known.set(now.images);
  });
  metrics.counter(requests, { method: 'POST', path: '/v1/facts', outcome: 'answered' });
  return {
    request: (method: string, path: string, outcome: RequestOutcome): void =>
      metrics.counter(requests, { method, path, outcome }).inc(),
    image: (facts: ImageFacts): void => counted(facts.error?.code ?? (facts.stale ? 'stale' : 'ok')),
    took: (durationMs: number): void => durations.observe(durationMs / 1000),
  };
}
