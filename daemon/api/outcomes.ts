/** Errors of the agent's API, `{"error": {"code", "message"}}` with an HTTP status, and its metrics. */
import type { Context } from 'koa';
import { BodyError } from '../../src/serving/body.ts';
import { agentPaths } from '../../src/fleet/connection.ts';
import { factsErrorCodes, type ImageFacts } from '../../src/images/facts/facts.ts';
import { counter, counts, gauge, histogram, type Metrics } from '../../src/telemetry/metrics.ts';

const requestOutcomes = ['answered', 'wrong', 'refused', 'overloaded', 'abandoned', 'failed'] as const;
type RequestOutcome = (typeof requestOutcomes)[number];

const requests = counter('archwright_agent_requests_total', 'Requests to the agent API.', {
  method: ['GET', 'POST', 'other'],
  path: [...Object.values(agentPaths), 'other'],
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
export const agentMetrics = [requests, images, requestSeconds, openRequests, knownImages];

export type AgentMeters = ReturnType<typeof bindAgentMetrics>;

/** @param levels current values, called before each scrape */
export function bindAgentMetrics(metrics: Metrics, levels: () => { images: number; open: number }) {
  const counted = counts(metrics, images, 'result', resultNames);
  const durations = metrics.histogram(requestSeconds);
  const open = metrics.gauge(openRequests);
  const known = metrics.gauge(knownImages);
  metrics.beforeScrape(() => {
    const now = levels();
    open.set(now.open);
    known.set(now.images);
  });
  metrics.counter(requests, { method: 'POST', path: agentPaths.facts, outcome: 'answered' });
  return {
    request: (method: string, path: string, outcome: RequestOutcome): void =>
      metrics.counter(requests, { method, path, outcome }).inc(),
    image: (facts: ImageFacts): void => counted(facts.error?.code ?? (facts.stale ? 'stale' : 'ok')),
    took: (durationMs: number): void => durations.observe(durationMs / 1000),
  };
}

/** The HTTP status and the outcome in metrics by code. */
const codes = {
  'bad-request': { status: 400, outcome: 'wrong' },
  forbidden: { status: 403, outcome: 'refused' },
  'not-found': { status: 404, outcome: 'wrong' },
  'method-not-allowed': { status: 405, outcome: 'wrong' },
  timeout: { status: 408, outcome: 'wrong' },
  'too-large': { status: 413, outcome: 'wrong' },
  'unsupported-media-type': { status: 415, outcome: 'wrong' },
  internal: { status: 500, outcome: 'failed' },
  overloaded: { status: 503, outcome: 'overloaded' },
} as const;

export type ApiErrorCode = keyof typeof codes;

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ApiErrorCode;
  readonly status: number;
  readonly outcome: RequestOutcome;
  constructor(code: ApiErrorCode, message: string) {
    super(message);
    this.code = code;
    this.status = codes[code].status;
    this.outcome = codes[code].outcome;
  }
}

/** The error for the client. Details of unexpected errors are omitted, because they may contain secrets. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof BodyError) {
    return new ApiError(error.code === 'aborted' ? 'bad-request' : error.code, error.message);
  }
  return new ApiError('internal', 'the agent failed to answer; its log says why');
}

export function writeError(ctx: Context, { code, status, message }: ApiError): void {
  ctx.status = status;
  ctx.body = { error: { code, message } };
  if (code === 'overloaded') ctx.set('retry-after', '1');
  // A refused client cannot do anything else on this connection.
  if (code === 'forbidden') ctx.set('connection', 'close');
}
