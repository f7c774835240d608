/**
 * HTTP requests to registries with circuit breakers, and a trace of each request for `inspect --verbose`. The
 * number of lookups at one registry is limited before (`src/images/memory/places.ts`); each sends its
 * requests one after the other.
 */
import type { Clock } from '../../async/clock.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../http/client.ts';
import type { LargeBody } from '../../http/body.ts';
import { retryAfter } from '../../http/headers.ts';
import { transportError, type TransportError, type TransportFailure } from '../../http/transport-error.ts';
import type { Attempt } from '../manifest-lookup.ts';
import { CircuitOpen, partOf, type CircuitBreaker } from './circuit-breaker.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { credentialLabel } from '../outcome.ts';

/** One request to an endpoint, with the headers of the endpoint's configuration. */
export interface EndpointRequest {
  readonly method: 'GET' | 'HEAD';
  readonly url: URL;
  readonly purpose: Attempt['purpose'];
  readonly accept: string;
  readonly maxBytes: number;
  readonly large?: LargeBody | undefined;
  readonly endpoint: Endpoint;
  readonly repository: string;
  /** Absent if the endpoint accepts no credentials. */
  readonly credential: MatchedCredential | undefined;
  readonly trace: ((attempt: Attempt) => void) | undefined;
}

/** Why a request is sent. */
interface RequestContext {
  readonly request: EndpointRequest;
  readonly purpose: Attempt['purpose'];
  /** Whether the request carries the credential, or a token for it. */
  readonly credentialUsed: boolean;
}

/** Keys of the circuits that a request passes. */
interface Circuits {
  readonly host: string;
  /** The host, or one registry behind a mirror: a dead registry must not close the mirror for the others. */
  readonly lane: string;
  /** The host with one credential. */
  readonly personal: string;
  /** The responses of one repository tell nothing about the others. */
  readonly repository: string;
  /** Whether another registry sent the client to this host, by a redirect or as its realm. */
  readonly isForeign: boolean;
}

/** These do not tell whether the host works: our rules, our limits, or the size of one response. */
const neutral: ReadonlySet<TransportFailure> = new Set<TransportFailure>([
  'aborted',
  'refused-address',
  'too-large',
  'encoded',
  'invalid',
  'not-tls',
]);

export class GuardedClient {
  readonly #client: HttpClient;
  readonly #breaker: CircuitBreaker;
  readonly #clock: Clock;

  constructor(client: HttpClient, breaker: CircuitBreaker, clock: Clock) {
    this.#client = client;
    this.#breaker = breaker;
    this.#clock = clock;
  }

  /** @throws TransportError, CircuitOpen */
  async send(request: HttpRequest, context: RequestContext, signal: AbortSignal): Promise<HttpResponse> {
    const circuits = circuitsOf(request.url.host, context);
    this.#admit(request.url.host, circuits);
    return await this.#sendTraced(request, context, circuits, signal);
  }

  async #sendTraced(
    request: HttpRequest,
    context: RequestContext,
    circuits: Circuits,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { method, url } = request;
    const { purpose } = context;
    const credential = credentialLabel(usedCredential(context));
    const started = this.#clock.monotonic();
    const record = (result: { status: number } | { problem: string }): void => {
      const durationMs = this.#clock.monotonic() - started;
      context.request.trace?.({ method, url: shownUrl(url), purpose, credential, ...result, durationMs });
    };
    try {
      const response = await this.#client.send(request, signal);
      this.#recordResponse(response, circuits);
      record({ status: response.status });
      return response;
    } catch (error) {
      const failed = transportError(error, url.host);
      this.#recordFailure(failed, circuits);
      record({ problem: failed.message });
      throw failed;
    }
  }

  /** Passes each circuit once. A trial that another circuit stops ends without a result. */
  #admit(where: string, circuits: Circuits): void {
    const { personal, repository } = circuits;
    const passed: string[] = [];
    for (const key of keysOf(circuits)) {
      const waitMs = this.#breaker.admit(key);
      if (waitMs === 0) {
        passed.push(key);
        continue;
      }
      for (const admitted of passed) this.#breaker.inconclusive(admitted);
      const rateLimited = key === personal || key === partOf(personal, repository);
      throw new CircuitOpen(where, { retryAfterMs: waitMs, rateLimited, why: this.#breaker.whyOf(key) });
    }
  }

  #recordResponse({ status, headers }: HttpResponse, circuits: Circuits): void {
    const { host, lane, personal, repository } = circuits;
    const pauseMs = retryAfter(headers['retry-after']?.[0], this.#clock.now());
    const why = `it answered ${status}`;
    const succeeded = (key: string): void => {
      this.#breaker.succeeded(key);
      this.#breaker.succeeded(partOf(key, repository));
    };
    if (status === 429) {
      succeeded(host);
      succeeded(lane);
      if (pauseMs === undefined) this.#inconclusive(personal, repository);
      else this.#breaker.pause(personal, pauseMs, why, repository);
      return;
    }
    succeeded(personal);
    if (lane !== host || status < 500) succeeded(host);
    if (status < 500) succeeded(lane);
    else this.#breaker.failed(lane, why, repository);
    if (status === 503 && pauseMs !== undefined) this.#breaker.pause(lane, pauseMs, why, repository);
  }

  /** A host that accepts connections works. A hang or cut may concern one repository or registry. */
  #recordFailure({ failure, phase, message }: TransportError, circuits: Circuits): void {
    const { host, lane, personal, repository, isForeign } = circuits;
    for (const key of [personal, lane, host]) this.#inconclusive(key, repository);
    if (neutral.has(failure)) return;
    if (phase === 'connect') this.#breaker.failed(host, message, isForeign ? repository : undefined);
    else this.#breaker.failed(lane, message, repository);
  }

  #inconclusive(key: string, repository: string): void {
    this.#breaker.inconclusive(key);
    this.#breaker.inconclusive(partOf(key, repository));
  }
}

function usedCredential({ request, credentialUsed }: RequestContext): MatchedCredential | undefined {
  return credentialUsed ? request.credential : undefined;
}

/**
 * A rate limit holds for one credential. A failure behind a mirror may be of that registry; a token server is
 * behind none. If a registry leads to another host, its circuits are used: it may choose a path there that
 * fails.
 */
function circuitsOf(target: string, context: RequestContext): Circuits {
  const { endpoint, repository, url } = context.request;
  const isForeign = target !== url.host;
  const host = isForeign ? `${url.host} to ${target}` : target;
  const isLane = context.purpose !== 'token' && endpoint.namespaceParameter;
  const lane = isLane ? `${host} for ${endpoint.namespace}` : host;
  const personal = `${host} as ${usedCredential(context)?.id ?? 'anonymous'}`;
  return { host, lane, personal, repository, isForeign };
}

function keysOf({ host, lane, personal, repository }: Circuits): Set<string> {
  const keys = [host, lane, personal];
  return new Set([...keys, ...keys.map((key) => partOf(key, repository))]);
}

/** Query keys that describe the request and cannot hold a secret; a pre-signed URL has others. */
const shownKeys = new Set(['ns', 'service', 'scope']);

/** A URL for people: no user info, and only harmless query keys. */
export function shownUrl(url: URL): string {
  const query = [...url.searchParams].filter(([key]) => shownKeys.has(key));
  const search = query.length === 0 ? '' : `?${new URLSearchParams(query).toString()}`;
  return `${url.protocol}//${url.host}${url.pathname}${search}`;
}
