/**
 * The agent's API, version 1, over HTTP: checks the role of the client, reads requests, and writes answers
 * and errors. Errors are `{"error": {"code", "message"}}`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { TLSSocket } from 'node:tls';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { readBody, BodyBudget } from '../../src/serving/body.ts';
import { formatFacts } from '../../src/images/facts/wire.ts';
import type { Clock } from '../../src/async/clock.ts';
import { agentPaths } from '../../src/fleet/connection.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { ApiError, apiErrorOf, writeError, bindAgentMetrics, type AgentMeters } from './outcomes.ts';
import { answerFacts, parseFactsRequest, type FactsOptions, type FactsRequest } from './facts.ts';

export interface ApiOptions extends FactsOptions {
  readonly info: () => Readonly<Record<string, unknown>>;
  readonly limits: ApiLimits;
  readonly metrics: Metrics;
}

export type ApiLimits = Readonly<typeof defaultApiLimits>;

export const defaultApiLimits = {
  /** Concurrent `POST /v1/facts`; others get `overloaded`: 12 webhooks with 40 connections each. */
  openRequests: 512,
  /** Concurrent `GET /v1/facts`. Webhooks read the facts once, when they start, a few in a rollout. */
  factsStreams: 4,
  /** Size of one `GET /v1/facts`: 100,000 images of 500 bytes, and some more. */
  maxStreamBytes: 64 * 1024 * 1024,
  /** Time for the client to read a `GET /v1/facts`. */
  streamTimeoutMs: 60_000,
  /** 1,000 images and a pod's pull secrets, which Kubernetes limits to 1 MiB each. */
  maxBodyBytes: 4 * 1024 * 1024,
  /** Clients are in the same cluster: a slower body has lost its sender. */
  bodyTimeoutMs: 10_000,
  /** Bodies of all open requests. Nearly all have some kilobytes; an agent has 256 MiB. */
  maxBodiesBytes: 24 * 1024 * 1024,
  /** Facts that clients have not read yet. A webhook reads at most 16 MiB of one answer. */
  maxUnreadBytes: 32 * 1024 * 1024,
};

/** An answer with less unread than this is never cut. */
const maxUnreadOfOne = 1024 * 1024;

export class Api {
  readonly #options: ApiOptions;
  readonly #meters: AgentMeters;
  readonly #bodies: BodyBudget;
  /** Lines of answers that wait for their clients. */
  readonly #unread = new Set<PassThrough>();
  #openRequests = 0;
  #streams = 0;

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#bodies = new BodyBudget(options.limits.maxBodiesBytes);
    this.#meters = bindAgentMetrics(options.metrics, () => ({
      images: options.cache.size,
      open: this.#openRequests,
    }));
  }

  handler(): (request: IncomingMessage, response: ServerResponse) => void {
    const router = new Router();
    router.post(agentPaths.facts, (ctx) => this.#postFacts(ctx));
    router.get(agentPaths.facts, (ctx) => this.#getFacts(ctx));
    router.get(agentPaths.info, (ctx) => {
      ctx.body = this.#options.info();
    });
    const app = new Koa();
    // Without a listener, Koa prints to the console. The clients disconnected during the answer.
    app.on('error', (error: unknown) =>
      this.#options.log.debug({ err: error }, 'a client did not read its answer'),
    );
    app
      .use((ctx, next) => this.#guard(ctx, next))
      .use(router.routes())
      .use(router.allowedMethods());
    const handle = app.callback();
    return (request, response) => void handle(request, response);
  }

  /** Checks the role of the client, and writes all errors. */
  async #guard(ctx: Context, next: () => Promise<unknown>): Promise<void> {
    try {
      const refused = roleProblem(ctx.req.socket, this.#options.clock);
      if (refused !== undefined) throw new ApiError('forbidden', refused);
      await next();
      if (ctx.status === 404)
        throw new ApiError(
          'not-found',
          `there is no ${ctx.path}; see ${Object.values(agentPaths).join(' and ')}`,
        );
      if (ctx.status === 405 || ctx.status === 501) {
        throw new ApiError('method-not-allowed', `${ctx.path} allows ${ctx.response.get('allow')}`);
      }
      this.#meters.request(ctx.method, ctx.path, 'answered');
    } catch (error) {
      this.#fail(ctx, error);
    }
  }

  #fail(ctx: Context, error: unknown): void {
    const { log } = this.#options;
    const shown = apiErrorOf(error);
    const gone = ctx.res.destroyed;
    this.#meters.request(ctx.method, ctx.path, gone ? 'abandoned' : shown.outcome);
    if (shown.code === 'internal' && !gone) log.error({ err: error }, 'a request failed unexpectedly');
    if (shown.code === 'forbidden') {
      log.warn({ peer: ctx.req.socket.remoteAddress, reason: shown.message }, 'a client was refused');
    }
    writeError(ctx, shown);
  }

  async #postFacts(ctx: Context): Promise<void> {
    const { clock, limits } = this.#options;
    if (ctx.request.is('application/json') !== 'application/json') {
      throw new ApiError('unsupported-media-type', 'the body must be application/json');
    }
    if (this.#openRequests >= limits.openRequests)
      throw new ApiError('overloaded', 'too many concurrent requests');
    const startedAt = clock.monotonic();
    this.#openRequests += 1;
    const share = this.#bodies.open();
    try {
      const bounds = { maxBytes: limits.maxBodyBytes, timeoutMs: limits.bodyTimeoutMs, share };
      const request = parseFactsRequest(await readBody(ctx.req, bounds));
      await this.#sendFacts(ctx, request);
    } finally {
      share.release();
      this.#openRequests -= 1;
      this.#meters.took(clock.monotonic() - startedAt);
    }
  }

  /** One line per image as soon as its facts are found; the header at once shows that the agent works. */
  async #sendFacts(ctx: Context, request: FactsRequest): Promise<void> {
    ctx.respond = false;
    ctx.res.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    const lines = new PassThrough();
    this.#unread.add(lines);
    const isSent = pipeline(lines, ctx.res);
    const sending = answerFacts(request, disconnected(ctx), this.#options).map(async (answer) => {
      const facts = await answer;
      this.#meters.image(facts);
      lines.write(`${JSON.stringify(facts)}\n`);
      if (this.#hasTooMuchUnread(lines)) ctx.res.destroy();
    });
    const isAnswered = Promise.all(sending).finally(() => lines.end());
    await Promise.all([isAnswered, isSent]).finally(() => this.#unread.delete(lines));
  }

  /** A client with much to read is disconnected if all answers together have too much. */
  #hasTooMuchUnread({ writableLength }: PassThrough): boolean {
    if (writableLength <= maxUnreadOfOne) return false;
    const all = [...this.#unread].reduce((sum, lines) => sum + lines.writableLength, 0);
    return all > this.#options.limits.maxUnreadBytes;
  }

  #getFacts(ctx: Context): void {
    const { clock, limits, log, cache } = this.#options;
    if (this.#streams >= limits.factsStreams) throw new ApiError('overloaded', 'too many concurrent readers');
    this.#streams += 1;
    const lines = formatFacts(cache.shared(), limits.maxStreamBytes);
    const stream = Readable.from(lines, { objectMode: false });
    stream.once('error', (error) => log.error({ err: error }, 'sending image facts failed unexpectedly'));
    const stopTimer = clock.timer(limits.streamTimeoutMs, () => ctx.res.destroy());
    ctx.res.once('close', () => {
      this.#streams -= 1;
      stopTimer();
    });
    ctx.type = 'application/x-ndjson';
    ctx.body = stream;
  }
}

/** Aborts when the client disconnects before it has its answer. */
function disconnected(ctx: Context): AbortSignal {
  const controller = new AbortController();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) controller.abort(new Error('the client disconnected'));
  });
  return controller.signal;
}

/** Common names of the subjects that have a role. */
const roleNames: ReadonlySet<unknown> = new Set(['archwright-webhook', 'archwright-controller']);

/** RFC 5280, 4.2.1.12: id-kp-clientAuth. */
const clientAuth = '1.3.6.1.5.5.7.3.2';

/** Why the client has no role, or the validity of its certificate, milliseconds since 1970. */
type Client = string | { readonly from: number; readonly to: number };

/** Parsing a certificate costs more than an answer from memory; a connection keeps its client. */
const clients = new WeakMap<Socket, Client>();

/**
 * Why a client has no role, if so. TLS refuses clients without a certificate of the cluster's archwright authority,
 * which also signs the agents' own certificates. Dates are checked per request; TLS checks only in handshakes.
 */
export function roleProblem(socket: Socket | TLSSocket, clock: Clock): string | undefined {
  let client = clients.get(socket);
  if (!client) {
    client = clientOf(socket);
    clients.set(socket, client);
  }
  if (typeof client === 'string') return client;
  const now = clock.now();
  if (client.from <= now && now <= client.to) return undefined;
  return 'the client certificate is expired or not valid yet';
}

function clientOf(socket: Socket | TLSSocket): Client {
  if (!('getPeerCertificate' in socket) || !socket.authorized) {
    return 'the connection has no verified client certificate';
  }
  // Contrary to the type, an ended socket has no certificate.
  const certificate = socket.getPeerCertificate() as Partial<ReturnType<TLSSocket['getPeerCertificate']>>;
  if (!roleNames.has(certificate.subject?.CN)) {
    return 'the client certificate has no role that may use this API';
  }
  if (!certificate.ext_key_usage?.includes(clientAuth)) {
    return 'the client certificate is not for client authentication';
  }
  return { from: Date.parse(certificate.valid_from ?? ''), to: Date.parse(certificate.valid_to ?? '') };
}
