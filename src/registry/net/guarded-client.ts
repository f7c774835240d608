/**
 * HTTP requests to registries with everything that protects them: a concurrency limit for each host, circuit breakers, and a
 * trace of each request for `inspect --verbose`.
 */
import type { Clock } from '../../async/clock.ts';
import type { HostSemaphore } from '../../async/semaphore.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../http/client.ts';
import { retryAfter } from '../../http/headers.ts';
import { TransportError, transportError, type TransportFailure } from '../../http/transport-error.ts';
import type { Attempt } from '../manifest-lookup.ts';
import { CircuitOpen, type CircuitBreaker } from './circuit-breaker.ts';
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
}

/** Failures that do not tell whether the host works: our own rules, our own limits, or the size of one response. */
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
  readonly #semaphore: HostSemaphore;
  readonly #breaker: CircuitBreaker;
  readonly #clock: Clock;

  constructor(client: HttpClient, semaphore: HostSemaphore, breaker: CircuitBreaker, clock: Clock) {
    this.#client = client;
    this.#semaphore = semaphore;
    this.#breaker = breaker;
    this.#clock = clock;
  }

  /** @throws TransportError, CircuitOpen */
  async send(request: HttpRequest, context: RequestContext, signal: AbortSignal): Promise<HttpResponse> {
    const circuits = circuitsOf(request.url.host, context);
    const leave = await this.#enter(circuits, signal);
    try {
      this.#admit(circuits);
      return await this.#sendTraced(request, context, circuits, signal);
    } finally {
      leave();
    }
  }

  async #enter({ host, lane }: Circuits, signal: AbortSignal): Promise<() => void> {
    try {
      return await this.#semaphore.enter(host, signal, lane);
    } catch (error) {
      throw new TransportError('aborted', host, 'given up while waiting for other requests', error);
    }
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
      const failed = transportError(error, circuits.host);
      this.#recordFailure(failed, circuits);
      record({ problem: failed.message });
      throw failed;
    }
  }

  /** Passes each circuit once. A trial that another circuit stops ends without a result. */
  #admit({ host, lane, personal }: Circuits): void {
    const passed: string[] = [];
    for (const key of new Set([host, lane, personal])) {
      const waitMs = this.#breaker.admit(key);
      if (waitMs === 0) {
        passed.push(key);
        continue;
      }
      for (const admitted of passed) this.#breaker.inconclusive(admitted);
      throw new CircuitOpen(host, waitMs, key === personal);
    }
  }

  #recordResponse({ status, headers }: HttpResponse, { host, lane, personal }: Circuits): void {
    const pauseMs = retryAfter(headers['retry-after']?.[0], this.#clock.now());
    if (status === 429) {
      this.#breaker.succeeded(host);
      this.#breaker.succeeded(lane);
      if (pauseMs === undefined) this.#breaker.inconclusive(personal);
      else this.#breaker.pause(personal, pauseMs);
      return;
    }
    this.#breaker.succeeded(personal);
    if (lane !== host || status < 500) this.#breaker.succeeded(host);
    if (status < 500) this.#breaker.succeeded(lane);
    else this.#breaker.failed(lane);
    if (status === 503 && pauseMs !== undefined) this.#breaker.pause(lane, pauseMs);
  }

  #recordFailure({ failure }: TransportError, { host, lane, personal }: Circuits): void {
    this.#breaker.inconclusive(personal);
    this.#breaker.inconclusive(lane);
    if (neutral.has(failure)) this.#breaker.inconclusive(host);
    else this.#breaker.failed(host);
  }
}

function usedCredential({ request, credentialUsed }: RequestContext): MatchedCredential | undefined {
  return credentialUsed ? request.credential : undefined;
}

/** A rate limit holds for one credential. A failure behind a mirror may be of that registry; a token server is behind none. */
function circuitsOf(host: string, context: RequestContext): Circuits {
  const { namespace, namespaceParameter } = context.request.endpoint;
  const lane = namespaceParameter && context.purpose !== 'token' ? `${host} for ${namespace}` : host;
  return { host, lane, personal: `${host} ${usedCredential(context)?.id ?? 'anonymous'}` };
}

/** Query keys that describe the request and cannot hold a secret; a pre-signed URL has others. */
const shownKeys = new Set(['ns', 'service', 'scope']);

/** A URL for people: no user info, and only harmless query keys. */
export function shownUrl(url: URL): string {
  const query = [...url.searchParams].filter(([key]) => shownKeys.has(key));
  const search = query.length === 0 ? '' : `?${new URLSearchParams(query).toString()}`;
  return `${url.protocol}//${url.host}${url.pathname}${search}`;
}
