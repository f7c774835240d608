/**
 * The agent's API, version 1, as HTTP: who may ask, what is a request, and how its answer or error is written. Everything that is not
 * facts is `{"error": {"code", "message"}}`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { readBody } from '../../src/serving/body.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { ApiError, apiErrorOf, writeError, type ApiErrorCode } from './api-error.ts';
import { createFactsApi, type FactsApiOptions } from './facts.ts';
import { parseFactsRequest } from './facts-request.ts';
import { bindAgentMetrics, type RequestOutcome } from './metrics.ts';
import { roleOf } from './roles.ts';

export interface AgentInfo {
  readonly nodeName: string;
  /** As in the node label `kubernetes.io/arch`. */
  readonly architecture: string;
  readonly version: string;
  readonly credentialFingerprint: string;
}

export interface ApiOptions {
  readonly memory: FactsApiOptions['memory'];
  readonly info: () => AgentInfo;
  readonly limits: ApiLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface ApiLimits {
  /** Requests for facts that are answered at the same time; more are told to come back. */
  readonly openRequests: number;
  /** Images of one request that are asked for at the same time. */
  readonly concurrentImages: number;
  /** Clients that are told what is known at the same time. */
  readonly knownStreams: number;
  readonly maxKnownBytes: number;
  /** Time in which a client has to take what is known. */
  readonly knownTimeoutMs: number;
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
}

export const defaultApiLimits: ApiLimits = {
  // Each webhook holds at most 32 connections; this is many of them with every connection in use.
  openRequests: 512,
  // The registry client has limits of its own per host; this keeps one large request from filling its queues.
  concurrentImages: 64,
  // Webhooks ask once, when they start; a rollout starts a few of them together.
  knownStreams: 4,
  // 100,000 images of some 500 bytes.
  maxKnownBytes: 64 * 1024 * 1024,
  knownTimeoutMs: 60_000,
  // 1,000 images and a pod's pull secrets, of which Kubernetes limits each to 1 MiB.
  maxBodyBytes: 4 * 1024 * 1024,
  // The clients are in the same cluster: a body that takes longer has lost its sender.
  bodyTimeoutMs: 10_000,
};

/** Makes the handler of the API's server. */
export function createApi(options: ApiOptions): (request: IncomingMessage, response: ServerResponse) => void {
  const { clock, limits, log } = options;
  const facts = createFactsApi({ ...options, ...limits });
  let open = 0;
  let streams = 0;
  const meters = bindAgentMetrics(options.metrics, () => ({ images: options.memory.size, open }));

  async function postFacts(ctx: Context): Promise<void> {
    if (ctx.request.is('application/json') !== 'application/json') {
      throw new ApiError('unsupported-media-type', 'the body must be application/json');
    }
    if (open >= limits.openRequests) throw new ApiError('overloaded', 'too many questions at the same time');
    const started = clock.monotonic();
    open += 1;
    try {
      const body = await readBody(ctx.req, {
        maxBytes: limits.maxBodyBytes,
        timeoutMs: limits.bodyTimeoutMs,
      });
      const results = await facts.answer(parseFactsRequest(body), goneSignal(ctx));
      for (const result of results) meters.image(result);
      ctx.body = { results };
    } finally {
      open -= 1;
      meters.took(clock.monotonic() - started);
    }
  }

  function getFacts(ctx: Context): void {
    if (streams >= limits.knownStreams) throw new ApiError('overloaded', 'too many readers at the same time');
    streams += 1;
    const stream = facts.known();
    stream.once('error', (error) => log.error({ err: error }, 'telling what is known failed unexpectedly'));
    const timer = setTimeout(() => ctx.res.destroy(), limits.knownTimeoutMs);
    ctx.res.once('close', () => {
      streams -= 1;
      clearTimeout(timer);
    });
    ctx.type = 'application/x-ndjson';
    ctx.body = stream;
  }

  const router = new Router();
  router.post('/v1/facts', postFacts);
  router.get('/v1/facts', getFacts);
  router.get('/v1/info', (ctx) => {
    ctx.body = options.info();
  });

  /** Checks the client first, then writes whatever goes wrong. */
  async function guard(ctx: Context, next: () => Promise<unknown>): Promise<void> {
    try {
      const check = roleOf(ctx.req.socket, clock);
      if ('refused' in check) throw new ApiError('forbidden', check.refused);
      await next();
      if (ctx.status === 404)
        throw new ApiError('not-found', `there is no ${ctx.path}; see /v1/facts and /v1/info`);
      if (ctx.status === 405 || ctx.status === 501) {
        throw new ApiError('method-not-allowed', `${ctx.path} knows ${ctx.response.get('allow')}`);
      }
      meters.request(ctx.method, ctx.path, 'answered');
    } catch (error) {
      const shown = apiErrorOf(error);
      const gone = ctx.res.destroyed;
      meters.request(ctx.method, ctx.path, gone ? 'abandoned' : outcomes[shown.code]);
      if (shown.code === 'internal' && !gone) log.error({ err: error }, 'a request failed unexpectedly');
      if (shown.code === 'forbidden') {
        log.warn({ peer: ctx.req.socket.remoteAddress, reason: shown.message }, 'a client was refused');
      }
      writeError(ctx, shown);
    }
  }

  const app = new Koa();
  // Without a listener Koa prints to the console. What comes here is a client that went away within its answer.
  app.on('error', (error: unknown) => log.debug({ err: error }, 'an answer was not taken'));
  app.use(guard).use(router.routes()).use(router.allowedMethods());
  const handle = app.callback();
  return (request, response) => void handle(request, response);
}

const outcomes: Readonly<Record<ApiErrorCode, RequestOutcome>> = {
  'bad-request': 'wrong',
  'not-found': 'wrong',
  'method-not-allowed': 'wrong',
  'too-large': 'wrong',
  'unsupported-media-type': 'wrong',
  timeout: 'wrong',
  forbidden: 'refused',
  overloaded: 'overloaded',
  internal: 'failed',
};

/** Aborts when the client goes away before it has its answer. */
function goneSignal(ctx: Context): AbortSignal {
  const gone = new AbortController();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) gone.abort(new Error('the client went away'));
  });
  return gone.signal;
}
