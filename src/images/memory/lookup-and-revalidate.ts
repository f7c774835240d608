/**
 * Lookups at the source that memory stands before. One lookup at a time runs for an image and a scope;
 * concurrent requests share it. Only its answer tells whether it depended on the service account of the first
 * request; then requests of other service accounts start their own.
 *
 * Requests wait for a place by namespace (`places.ts`), and only then start or join a lookup: an image that
 * waits in the queue of a busy namespace does not wait there for others.
 */
import type { Clock } from '../../async/clock.ts';
import { Overloaded } from '../../async/fair-semaphore.ts';
import { RunTimeout, SingleFlight } from '../../async/single-flight.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { ServiceAccountName } from '../../credentials/credential.ts';
import type { Attempt } from '../../registry/manifest-lookup.ts';
import type { Log } from '../../telemetry/log.ts';
import {
  failedFacts,
  type LookupOptions,
  type FactsErrorCode,
  type ImageFacts,
  type ImageFactsSource,
  type ImageRequest,
} from '../facts/facts.ts';
import type { Entry } from './store.ts';
import type { KnownFacts } from './known-facts.ts';
import type { FactsMetrics } from './metrics.ts';
import type { LookupPlaces } from './places.ts';
import {
  isPerAccount,
  isSameAccount,
  keyOf,
  requestWithin,
  scopedKey,
  scopeOf,
  withAccount,
} from './scope.ts';

/** An agent's memory may be as old as ours; repeating a revalidation at once would not help. */
const revalidationPauseMs = 1000;

export type Trace = (attempt: Attempt) => void;

interface LookupsOptions {
  readonly source: ImageFactsSource;
  readonly known: KnownFacts;
  /** What memory knows meanwhile, for a request that had to wait. */
  readonly recall: (request: ImageRequest) => ImageFacts | undefined;
  /** Time limit of waiting for a place, and of a lookup. */
  readonly timeoutMs: number;
  /** Lookups in progress. */
  readonly places: LookupPlaces;
  /** Places of their own: revalidations never keep a pod waiting. */
  readonly revalidationPlaces: LookupPlaces;
  readonly namespacesShareLookups: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: FactsMetrics;
}

interface Answer {
  readonly facts: ImageFacts;
  /** The service account of the request that started the lookup. */
  readonly account: ServiceAccountName | undefined;
  readonly perAccount: boolean;
}

export class Lookups {
  readonly #options: LookupsOptions;
  readonly #flights: SingleFlight<Answer>;
  /** Requests of one namespace for the same image share their place. */
  readonly #requests: SingleFlight<ImageFacts>;
  #closed = false;

  constructor(options: LookupsOptions) {
    this.#options = options;
    const limit = { ms: options.timeoutMs, clock: options.clock };
    this.#flights = new SingleFlight({ limit });
    this.#requests = new SingleFlight({ limit });
  }

  get size(): number {
    return this.#flights.size;
  }

  /** Looks up, or joins a running lookup. Failures are answers. @param old returned for a failure */
  lookup(request: ImageRequest, old: Entry | undefined, trace?: Trace): Promise<ImageFacts> {
    return this.#inTurn(accountKey(request, flightKey(request, old)), request, async (hasWaited) => {
      const recalled = hasWaited ? this.#options.recall(request) : undefined;
      return recalled ?? (await this.#lookUp(request, old, trace));
    });
  }

  /** Looks up an image whose facts are in memory, for its documents. The answer is not kept. */
  lookUpAgain(request: ImageRequest): Promise<ImageFacts> {
    const { serviceAccount: account } = request;
    const key = `again ${accountKey(request)}`;
    const ask = async (signal: AbortSignal): Promise<Answer> => {
      const facts = await this.#ask(request, { signal });
      return { facts, account, perAccount: isPerAccount(facts) };
    };
    return this.#inTurn(key, request, async () => {
      this.#count(this.#flights.has(key));
      return (await this.#flights.run(key, ask)).facts;
    });
  }

  /** @param key requests of one namespace with the same key share one turn */
  #inTurn(
    key: string,
    request: ImageRequest,
    work: (hasWaited: boolean) => Promise<ImageFacts>,
  ): Promise<ImageFacts> {
    const ofNamespace = scopedKey(key, request.namespace ?? '');
    if (this.#requests.has(ofNamespace)) this.#options.metrics.joined.inc();
    return this.#requests.run(ofNamespace, async (signal) => {
      const { places } = this.#options;
      let leave = places.tryEnter(request);
      const hasWaited = !leave;
      try {
        leave ??= await places.enter(request, signal);
      } catch (error) {
        return this.#notStarted(request, error);
      }
      try {
        return await work(hasWaited);
      } finally {
        leave();
      }
    });
  }

  async #lookUp(request: ImageRequest, old: Entry | undefined, trace?: Trace): Promise<ImageFacts> {
    const key = this.#inQueueOf(request, flightKey(request, old));
    const forAll = scopedKey(key, scopeOf(request.pullCredentials));
    const forAccount = accountKey(request, key);
    const isAccountRunning = this.#options.known.dependsOnAccounts && this.#flights.has(forAccount);
    const answer = await this.#join(isAccountRunning ? forAccount : forAll, request, old, trace);
    if (!answer.perAccount || isSameAccount(answer.account, request.serviceAccount)) return answer.facts;
    return (await this.#join(forAccount, request, old, trace)).facts;
  }

  /** Confirms facts in the background, if that neither runs nor just ran, and there is a place. */
  revalidate(request: ImageRequest, entry: Entry): void {
    const { revalidationPlaces, clock, log, metrics } = this.#options;
    const key = scopedKey(this.#inQueueOf(request, keyOf(request)), entry.scope);
    const now = clock.monotonic();
    if (this.#closed || now < entry.pausedUntil) return;
    if (this.#flights.has(key)) return;
    const leave = revalidationPlaces.tryEnter(request);
    if (!leave) return;
    entry.pausedUntil = now + revalidationPauseMs;
    metrics.revalidated.inc();
    this.#run(key, requestWithin(entry.scope, request), entry)
      .catch((error: unknown) =>
        log.error({ err: error, image: request.image }, 'a revalidation failed unexpectedly'),
      )
      .finally(leave);
  }

  /** Aborts the lookups that run; their answers are not kept. */
  async close(): Promise<void> {
    this.#closed = true;
    const reason = new Error('the program is ending');
    await Promise.all([this.#requests.close(reason), this.#flights.close(reason)]);
  }

  #inQueueOf({ namespace = '' }: ImageRequest, key: string): string {
    return this.#options.namespacesShareLookups ? key : `${namespace} ${key}`;
  }

  async #join(key: string, request: ImageRequest, old: Entry | undefined, trace?: Trace): Promise<Answer> {
    this.#count(this.#flights.has(key));
    return this.#run(key, request, old, trace);
  }

  #count(joins: boolean): void {
    const { metrics } = this.#options;
    (joins ? metrics.joined : metrics.requested).inc();
  }

  #run(key: string, request: ImageRequest, old: Entry | undefined, trace?: Trace): Promise<Answer> {
    return this.#flights.run(key, async (signal) => {
      const { known } = this.#options;
      const compared = old ? { known: known.factsOf(old, request, false) } : unchangedFacts(request);
      const answer = await this.#ask(request, { signal, ...compared, ...(trace && { trace }) });
      const facts = this.#closed ? answer : known.record(request, answer, old);
      const perAccount = isPerAccount(answer) || isPerAccount(facts);
      return { facts, account: request.serviceAccount, perAccount };
    });
  }

  /** The lookup did not start. The cause is neither the image nor its registry. */
  #notStarted(request: ImageRequest, error: unknown): ImageFacts {
    if (this.#closed) return this.#failed(request, 'unavailable', 'the program is ending');
    if (error instanceof Overloaded) {
      const message =
        'too many other images of this namespace or registry are looked up; the next attempt is in a moment';
      return this.#failed(request, 'rate-limited', message);
    }
    if (error instanceof RunTimeout) {
      const message = `${error.message}: other images of this namespace or registry came first`;
      return this.#failed(request, 'timeout', message);
    }
    throw error;
  }

  async #ask(request: ImageRequest, options: LookupOptions): Promise<ImageFacts> {
    const { source, log } = this.#options;
    try {
      const facts = await unlessAborted(source.lookup(request, options), options.signal);
      // Warnings and events contain less.
      if (facts.error) log.info({ image: request.image, ...facts.error }, 'an image could not be inspected');
      return facts;
    } catch (error) {
      if (error instanceof RunTimeout) return this.#failed(request, 'timeout', error.message);
      if (this.#closed) return this.#failed(request, 'unavailable', 'the program is ending');
      // A source answers with an error and does not throw one: this is a fault of ours.
      log.error({ err: error, image: request.image }, 'inspecting an image failed unexpectedly');
      const message = 'inspecting the image failed unexpectedly; the log says why';
      return this.#failed(request, 'unavailable', message);
    }
  }

  #failed({ image }: ImageRequest, code: FactsErrorCode, message: string): ImageFacts {
    return failedFacts(image, { code, message }, this.#options.clock.now());
  }
}

function accountKey(request: ImageRequest, key = keyOf(request)): string {
  return scopedKey(key, withAccount(scopeOf(request.pullCredentials), request.serviceAccount));
}

/** A lookup that may answer `unchanged` serves no pod, so none joins it. */
function flightKey(request: ImageRequest, old: Entry | undefined): string {
  const key = keyOf(request);
  return old === undefined && request.knownDigest !== undefined ? scopedKey(key, 'known') : key;
}

/** What a source compares with if only the digest is known. */
function unchangedFacts({ image, knownDigest: digest }: ImageRequest): Pick<LookupOptions, 'known'> {
  if (digest === undefined) return {};
  const { error: _, ...facts } = failedFacts(image, { code: 'unavailable', message: '' }, 0);
  return { known: { ...facts, digest, unchanged: true } };
}
