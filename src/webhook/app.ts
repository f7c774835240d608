/**
 * The HTTP side of the webhook, on Koa. No body parser: a review is read once, with a limit, and parsed once.
 * Anything but a review of the API server is refused before its body is read, and its connection is closed.
 */
import { Router } from '@koa/router';
import Koa from 'koa';
import { BodyBudget, BodyError, readBody } from '../serving/body.ts';
import { probe, type Checks } from '../serving/health.ts';
import type { AdmissionRequest, AdmissionResponse } from '../kube/api/objects.ts';
import type { Clock } from '../async/clock.ts';
import { hasCertificate } from '../serving/tls-files.ts';
import type { Log } from '../telemetry/log.ts';
import type { AdmissionPaths } from './admission-paths.ts';
import type { AdmissionCounters, BadRequestReason } from './metrics.ts';
import type { Mutator } from './mutate.ts';
import { BadReview, formatReview, parsedBytes, parseReview } from './review.ts';

/** An update has the object twice, each up to 3 MiB (the API server's limit), and 1 MiB of envelope. */
export const maxReviewBytes = 2 * 3 * 1024 * 1024 + 1024 * 1024;

/** A webhook's timeoutSeconds is at most 30, and most are 10: after that no client waits. */
const defaultBodyTimeoutMs = 10_000;

/**
 * All bodies that are read or being answered, and the answers. With the objects parsed from them, they have up
 * to three times as many bytes; the rest of the process has 130 MiB, and a pod's limit is 384 MiB.
 */
export const maxBodiesBytes = 64 * 1024 * 1024;

const statusByReason: Readonly<Record<BadRequestReason, number>> = {
  path: 404,
  method: 405,
  'no-certificate': 403,
  overloaded: 503,
  body: 408,
  'too-large': 413,
  'content-type': 400,
  'not-json': 400,
  'not-a-review': 400,
};

/** Refusals before or during the body: the caller is not an API server, or the process has no room. */
const closing: ReadonlySet<BadRequestReason> = new Set(['path', 'method', 'no-certificate', 'overloaded']);

export interface AppOptions {
  readonly mutator: Pick<Mutator, 'mutate'>;
  readonly paths: AdmissionPaths;
  /** Whether a review needs a client certificate. */
  readonly needsCertificate: boolean;
  readonly inlineBudgetMs: () => number;
  readonly ready: Checks;
  readonly counters: AdmissionCounters;
  readonly clock: Clock;
  readonly log: Log;
  readonly bodyTimeoutMs?: number | undefined;
}

export function createApp(options: AppOptions): Koa {
  const { log } = options;
  const reviews = reviewsOf(options);
  const app = new Koa();
  app.on('error', (error: unknown) => {
    if (isClientFault(error)) log.debug({ err: error }, 'a client went away');
    else log.error({ err: error }, 'a request failed');
  });
  const probes = new Router({ sensitive: true, strict: true });
  probes.get('/healthz', (ctx) => {
    ctx.body = 'ok\n';
  });
  probes.get('/readyz', (ctx) => reviews.readiness(ctx));
  // Reviews have no route: to look for one costs an eighth of what a warm admission adds to bare HTTPS.
  app.use((ctx, next) => reviews.handle(ctx, next));
  app.use(probes.routes());
  app.use((ctx) => reviews.refuse(ctx, 'path', 'not found'));
  return app;
}

function reviewsOf(options: AppOptions) {
  const { mutator, paths, needsCertificate, inlineBudgetMs, ready, counters, clock, log } = options;
  const { bodyTimeoutMs: timeoutMs = defaultBodyTimeoutMs } = options;
  const budget = new BodyBudget(maxBodiesBytes);

  function handle(ctx: Koa.Context, next: Koa.Next): Promise<void> | void {
    const { method, url = '' } = ctx.req;
    const route = paths.routeOf(url);
    if (route === undefined) return next();
    // The controller probes the path itself, so that it knows that this replica accepts it.
    if (method === 'GET' || method === 'HEAD') return readiness(ctx);
    if (method !== 'POST') return refuse(ctx, 'method', 'send a review by POST');
    if (needsCertificate && !hasCertificate(ctx.req.socket))
      return refuse(ctx, 'no-certificate', 'a client certificate is required');
    if (route === 'validate') return review(ctx, ({ uid }) => Promise.resolve({ uid, allowed: true }));
    return review(ctx, (request) => mutator.mutate(request, budgetMs(inlineBudgetMs(), url)));
  }

  /** Whether this replica is ready. */
  function readiness(ctx: Koa.Context): void {
    const { status, text } = probe(ready);
    ctx.status = status;
    ctx.body = text;
  }

  async function review(
    ctx: Koa.Context,
    answer: (request: AdmissionRequest) => Promise<AdmissionResponse>,
  ): Promise<void> {
    const type = ctx.req.headers['content-type'];
    if (type !== 'application/json' && !type?.startsWith('application/json;'))
      return refuse(ctx, 'content-type', 'the content type must be application/json');
    const share = budget.open();
    // The answer counts until it is sent: a slow client holds it in memory.
    ctx.res.once('close', () => share.release());
    try {
      const body = await readBody(ctx.req, { maxBytes: maxReviewBytes, timeoutMs, share });
      const started = clock.monotonic();
      if (!share.grow(parsedBytes(body, budget.isQuiet))) return overloaded(ctx);
      const text = formatReview(await answer(parseReview(body)));
      if (!share.grow(text.length)) return overloaded(ctx);
      send(ctx, text);
      counters.seconds.observe((clock.monotonic() - started) / 1000);
    } catch (error) {
      if (error instanceof BadReview) refuse(ctx, error.code, error.message);
      else if (error instanceof BodyError) refuse(ctx, reasonOf(error), error.message);
      else throw error;
    }
  }

  function overloaded(ctx: Koa.Context): void {
    refuse(ctx, 'overloaded', 'too many reviews are in progress; try again');
  }

  function refuse(ctx: Koa.Context, reason: BadRequestReason, message: string): void {
    counters.refused(reason);
    log.debug({ reason, peer: ctx.req.socket.remoteAddress }, 'a request was not an admission review');
    ctx.status = statusByReason[reason];
    ctx.type = 'text/plain';
    // Node then closes the connection after the answer, and reads nothing more.
    if (closing.has(reason)) ctx.set('connection', 'close');
    ctx.body = `${message}\n`;
  }

  return { handle, readiness, refuse };
}

function reasonOf({ code }: BodyError): BadRequestReason {
  return code === 'too-large' || code === 'overloaded' ? code : 'body';
}

/** Koa's own response handling costs a tenth of a warm admission: it looks up known types and statuses. */
function send(ctx: Koa.Context, text: string): void {
  ctx.respond = false;
  const length = Buffer.byteLength(text);
  const headers = { 'content-type': 'application/json', 'content-length': length };
  // As many bytes as characters: plain ASCII, which is written faster as Latin-1, its superset.
  ctx.res.writeHead(200, headers).end(text, length === text.length ? 'latin1' : 'utf8');
}

/** Errors of sockets and Node's parser if a client goes away or sends no HTTP, as any client may. */
const clientFaults = /^(ECONNRESET|ECONNABORTED|EPIPE|ERR_STREAM_PREMATURE_CLOSE|HPE_.*)$/;

function isClientFault(error: unknown): boolean {
  return clientFaults.test((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}

/**
 * The query has the API server's time limit (`/mutate?timeout=2s`). At most half of that is spent on waiting, so
 * that a too high inline budget does not make it give up.
 */
export function budgetMs(inlineBudgetMs: number, url: string | undefined): number {
  const seconds = url === undefined ? undefined : /[?&]timeout=(\d{1,3})s(?:&|$)/.exec(url)?.[1];
  return seconds === undefined ? inlineBudgetMs : Math.min(inlineBudgetMs, Number(seconds) * 500);
}
