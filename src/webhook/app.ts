/** The HTTP side of the webhook, on Koa. No body parser: a review is read once, with a limit, and parsed once. */
import type { IncomingMessage } from 'node:http';
import { Router } from '@koa/router';
import Koa from 'koa';
import { BodyError, readBody } from '../serving/body.ts';
import { probe, type Checks } from '../serving/health.ts';
import type { AdmissionRequest, AdmissionResponse } from '../kube/api/objects.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { AdmissionCounters, BadRequestReason } from './metrics.ts';
import type { Mutator } from './mutate.ts';
import { BadReview, formatReview, parseReview } from './review.ts';

/** An update carries the object twice, each at most 3 MiB (what the API server takes), and 1 MiB of envelope. */
export const maxReviewBytes = 2 * 3 * 1024 * 1024 + 1024 * 1024;

/** A webhook's timeoutSeconds is at most 30, and most are 10: after that no client waits. */
const defaultBodyTimeoutMs = 10_000;

const statusByReason: Readonly<Record<BadRequestReason, number>> = {
  body: 408,
  'too-large': 413,
  'content-type': 400,
  'not-json': 400,
  'not-a-review': 400,
};

export function createApp(options: {
  readonly mutator: Pick<Mutator, 'mutate'>;
  readonly inlineBudgetMs: () => number;
  readonly ready: Checks;
  readonly counters: AdmissionCounters;
  readonly clock: Clock;
  readonly log: Log;
  readonly bodyTimeoutMs?: number | undefined;
}): Koa {
  const { mutator, counters, clock, log } = options;
  const limits = { maxBytes: maxReviewBytes, timeoutMs: options.bodyTimeoutMs ?? defaultBodyTimeoutMs };
  const router = new Router();

  async function review(
    ctx: Koa.Context,
    answer: (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>,
  ): Promise<void> {
    const type = ctx.req.headers['content-type'];
    if (type !== 'application/json' && !type?.startsWith('application/json;'))
      return refuse(ctx, 'content-type', 'the content type must be application/json');
    let request: AdmissionRequest;
    let started: number;
    try {
      const body = await readBody(ctx.req, limits);
      started = clock.monotonic();
      request = parseReview(body);
    } catch (error) {
      if (error instanceof BadReview) return refuse(ctx, error.code, error.message);
      if (error instanceof BodyError)
        return refuse(ctx, error.code === 'too-large' ? 'too-large' : 'body', error.message);
      throw error;
    }
    const answered = answer(request);
    const response = answered instanceof Promise ? await answered : answered;
    send(ctx, formatReview(response));
    counters.seconds.observe((clock.monotonic() - started) / 1000);
  }

  /** Koa's own response handling would cost a tenth of a warm admission: it looks up types and statuses that are known. */
  function send(ctx: Koa.Context, text: string): void {
    ctx.respond = false;
    const length = Buffer.byteLength(text);
    const headers = { 'content-type': 'application/json', 'content-length': length };
    // As many bytes as characters: plain ASCII, which is written faster as Latin-1, its superset.
    ctx.res.writeHead(200, headers).end(text, length === text.length ? 'latin1' : 'utf8');
  }

  function refuse(ctx: Koa.Context, reason: BadRequestReason, message: string): void {
    counters.refused(reason);
    log.debug({ reason, peer: ctx.req.socket.remoteAddress }, 'a request was no admission review');
    ctx.status = statusByReason[reason];
    ctx.type = 'text/plain';
    ctx.body = `${message}\n`;
  }

  function admit(ctx: Koa.Context): Promise<void> {
    return review(ctx, (request) => mutator.mutate(request, budgetMs(options.inlineBudgetMs(), ctx.req.url)));
  }

  router.post('/mutate', admit);
  router.post('/validate', (ctx) => review(ctx, ({ uid }) => ({ uid, allowed: true })));
  router.get('/healthz', (ctx) => {
    ctx.body = 'ok\n';
  });
  router.get('/readyz', (ctx) => {
    const { status, text } = probe(options.ready);
    ctx.status = status;
    ctx.body = text;
  });

  const app = new Koa();
  app.on('error', (error: unknown) => {
    if (isClientFault(error)) log.debug({ err: error }, 'a client went away');
    else log.error({ err: error }, 'a request failed');
  });
  // Looking for its route costs an eighth of what a warm admission adds to bare HTTPS, so this one path is not looked for.
  app.use((ctx, next) => (isAdmission(ctx.req) ? admit(ctx) : next()));
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}

function isAdmission({ method, url }: IncomingMessage): boolean {
  return method === 'POST' && url !== undefined && (url.startsWith('/mutate?') || url === '/mutate');
}

/** How sockets and Node's parser say that the other side went away or sent no HTTP; a client may do that at any time. */
const clientFaults = /^(ECONNRESET|ECONNABORTED|EPIPE|ERR_STREAM_PREMATURE_CLOSE|HPE_.*)$/;

function isClientFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && clientFaults.test(String(error.code));
}

/**
 * The API server says how long it waits (`/mutate?timeout=2s`). At most half of that is spent on waiting, so that an inline budget that
 * is set too high does not make it give up.
 */
export function budgetMs(inlineBudgetMs: number, url: string | undefined): number {
  const seconds = url === undefined ? undefined : /[?&]timeout=(\d{1,3})s(?:&|$)/.exec(url)?.[1];
  return seconds === undefined ? inlineBudgetMs : Math.min(inlineBudgetMs, Number(seconds) * 500);
}
