/**
 * The cache of image facts. It stands before the agents (webhook, controller) or the registries (agent,
 * command line). A request says how old an answer may be. `peek` answers from memory: from the shared entry
 * of the image, else from the one of the request's own credentials (`entry.ts` has the table, `scope.ts` who
 * sees what). `get` also looks up what is not there, once for all callers. An answer that grows old is
 * confirmed in the background.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { Amd64Level } from '../../nodes/node-class.ts';
import type { Log } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import {
  failedFacts,
  isOfPod,
  type ImageFacts,
  type ImageFactsSource,
  type ImageRequest,
  type LookupOptions,
} from '../facts/facts.ts';
import { validReference, type Reference } from '../references/reference.ts';
import { noOverrides, type Overrides } from '../sources/overrides.ts';
import { Entries, type Place } from './entries.ts';
import {
  dependsOnCredentials,
  factsOf,
  isFailing,
  isFresh,
  knownOf,
  type Entry,
  type Failure,
  type Known,
} from './entry.ts';
import type { FactsFile } from './facts-file.ts';
import { createFactsMetrics, type FactsMetrics } from './metrics.ts';
import { Lookups } from './lookups.ts';
import { keyOf, scopeOf, sharedScope, withoutCredentials } from './scope.ts';

export interface FactsCacheOptions {
  readonly source: ImageFactsSource;
  /** An older answer is confirmed in the background, milliseconds; read at each request. Default: 15 min. */
  readonly refreshAfterMs?: () => number;
  readonly overrides?: Overrides;
  /** By the estimates of `size.ts`. */
  readonly maxBytes?: number;
  /** Time limit of one lookup at the source, however many requests wait for it. */
  readonly lookupTimeoutMs?: number;
  /** Lookups in progress. */
  readonly concurrentLookups?: number;
  /** How many of these may be at one registry host. Default: a quarter. */
  readonly lookupsPerHost?: number | undefined;
  /** Keeps shared facts across restarts. */
  readonly file?: FactsFile | undefined;
  readonly metrics?: FactsMetrics;
  readonly clock?: Clock;
  readonly log: Log;
}

const mebibyte = 1_048_576;
/** One HEAD per image, which registries do not count, and only while pods use the image. */
const defaultRefreshMs = 15 * 60_000;
const defaultLookupTimeoutMs = 15_000;
/** For a webhook or the controller: a few hundred for each busy namespace. */
const defaultConcurrentLookups = 2048;

const olderFacts = { code: 'unavailable', message: 'the registry fails; older facts were given' } as const;

export class FactsCache {
  readonly #refreshAfterMs: () => number;
  readonly #overrides: Overrides;
  readonly #file: FactsFile | undefined;
  readonly #metrics: FactsMetrics;
  readonly #clock: Clock;
  readonly #entries: Entries;
  readonly #lookups: Lookups;

  constructor(options: FactsCacheOptions) {
    const { concurrentLookups = defaultConcurrentLookups, clock = systemClock } = options;
    const { lookupsPerHost = Math.ceil(concurrentLookups / 4), maxBytes = 64 * mebibyte } = options;
    this.#refreshAfterMs = options.refreshAfterMs ?? (() => defaultRefreshMs);
    this.#overrides = options.overrides ?? noOverrides;
    this.#file = options.file;
    this.#metrics = options.metrics ?? createFactsMetrics(createMetrics());
    this.#clock = clock;
    this.#entries = new Entries(maxBytes, clock, () => this.#metrics.evicted.inc());
    const { lookupTimeoutMs: timeoutMs = defaultLookupTimeoutMs } = options;
    const limits = { timeoutMs, places: concurrentLookups, placesPerHost: lookupsPerHost };
    const { source, log } = options;
    this.#lookups = new Lookups({ source, limits, clock, log, metrics: this.#metrics });
    this.#metrics.watch(this.#entries, this.#lookups);
    options.file?.keep(() => this.shared());
  }

  /**
   * The answer without a lookup: an override, facts that are young enough, older facts or an error while
   * lookups fail. `undefined`: a lookup is needed. Confirms facts in the background when they grow old.
   */
  peek(request: ImageRequest): ImageFacts | undefined {
    const override = this.#overrides.find(request.image, request.reference);
    if (override) {
      this.#metrics.answered('override');
      return override;
    }
    const now = this.#clock.monotonic();
    const shared = this.#shared(request);
    // A lookup with the request's own credentials may do better than a refusal without them.
    const isRefused = shared?.failure && isFailing(shared, now) && isForOthers(shared.failure, request);
    if (shared?.known && !isRefused && isFresh(shared, request, now))
      return this.#fresh(shared, shared.known, request, now);
    const own = this.#own(request);
    if (own?.known && isFresh(own, request, now)) return this.#fresh(own, own.known, request, now);
    for (const { failure, known } of [!isRefused && shared, own].filter((entry) => !!entry)) {
      if (!failure || now >= failure.retryAt) continue;
      this.#metrics.answered(known ? 'stale' : 'failure');
      return known ? factsOf(known, request.image, true) : this.#failed(request, failure);
    }
    this.#metrics.answered('miss');
    return undefined;
  }

  /**
   * The answer of `peek`, else of a lookup. A lookup is shared and has its own time limit: it goes on when
   * `signal` aborts. A failure is an answer. `trace` is called only for requests of this lookup.
   * @throws the signal's reason if it aborts first
   */
  async get(request: ImageRequest, { signal, trace }: LookupOptions): Promise<ImageFacts> {
    signal.throwIfAborted();
    const facts = this.peek(request) ?? (await unlessAborted(this.#lookUp(request, trace), signal));
    return facts.image === request.image ? facts : { ...facts, image: request.image };
  }

  /** The newest facts of any age, for when there is no time for a lookup. Stale if they are too old. */
  lastKnown(request: ImageRequest): ImageFacts | undefined {
    const override = this.#overrides.find(request.image, request.reference);
    if (override) return override;
    const known = this.#newest(request);
    if (!known) return undefined;
    const ageMs = this.#clock.monotonic() - known.at;
    return factsOf(known, request.image, ageMs >= request.maxAgeMs);
  }

  /** The level of x86-64 that an override states for an image. Absent if none states any. */
  get levelOf(): ((image: string) => Amd64Level | undefined) | undefined {
    const { levelOf } = this.#overrides;
    if (!levelOf) return undefined;
    return (image) => {
      const reference = validReference(image);
      return reference && levelOf(reference);
    };
  }

  /** Takes shared facts from an agent or a file. Older facts never replace newer ones. */
  learn(facts: ImageFacts): void {
    const reference = validReference(facts.image);
    if (!reference || isOfPod(facts)) return;
    const known = knownOf(facts, Number.POSITIVE_INFINITY, this.#clock);
    if (!known || !isOf(known, reference)) return;
    this.#lookups.proves({ reference }, facts);
    this.#know({ key: keyOf({ reference }), scope: sharedScope, owner: '' }, known);
  }

  /** A tag names this digest now: facts of other digests are forgotten, and older answers do not count. */
  forget(image: string, digest: string): void {
    const reference = validReference(image);
    if (!reference) return;
    this.#entries.forgetOthers(keyOf({ reference }), digest);
    this.#file?.changed();
  }

  /** All shared facts, the newest first: never facts that depend on a pod's own credentials. */
  *shared(): Generator<ImageFacts> {
    for (const { key, known } of this.#entries.shared()) yield factsOf(known, key, false);
  }

  get bytes(): number {
    return this.#entries.bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Ends lookups and timers; writes the file. */
  async close(): Promise<void> {
    await this.#lookups.close();
    await this.#file?.close();
  }

  #shared(request: ImageRequest): Entry | undefined {
    return this.#entries.find(keyOf(request), request.reference, sharedScope);
  }

  /** The entry for the credentials of the request, if it has some. */
  #own(request: ImageRequest): Entry | undefined {
    const scope = scopeOf(request);
    return scope === sharedScope ? undefined : this.#entries.find(keyOf(request), request.reference, scope);
  }

  #newest(request: ImageRequest): Known | undefined {
    const [shared, own] = [this.#shared(request)?.known, this.#own(request)?.known];
    return shared && own ? (shared.at < own.at ? own : shared) : (shared ?? own);
  }

  #fresh(entry: Entry, known: Known, request: ImageRequest, now: number): ImageFacts {
    this.#entries.touch(entry);
    const refreshAfterMs = this.#refreshAfterMs();
    const isDue = request.reference.digest === undefined && now - known.at >= refreshAfterMs;
    const stale = isDue && isFailing(entry, now);
    if (isDue && !stale) this.#refresh(entry, request, refreshAfterMs);
    this.#metrics.answered(stale ? 'stale' : isDue ? 'due' : 'fresh');
    return factsOf(known, request.image, stale);
  }

  /** Confirms an entry in the background. An agent that confirmed it not long ago need not do it again. */
  #refresh({ key }: Entry, request: ImageRequest, refreshAfterMs: number): void {
    const isShared = key === keyOf(request);
    const due = { ...(isShared ? withoutCredentials(request) : request), maxAgeMs: refreshAfterMs / 2 };
    this.#lookups.runInBackground(due, (signal) => this.#ask(due, { signal }));
  }

  /** With shared facts, the first lookup is without the pod's credentials, so that it serves all pods. */
  async #lookUp(request: ImageRequest, trace: LookupOptions['trace']): Promise<ImageFacts> {
    const anonymous = withoutCredentials(request);
    if (scopeOf(request) !== sharedScope && this.#shared(request)?.known && !this.#isRefused(request)) {
      const facts = await this.#run(anonymous, trace);
      if (!this.#isRefused(request)) return facts;
    }
    return this.#run(request, trace);
  }

  /** Whether the image was refused without the credentials of the request. */
  #isRefused(request: ImageRequest): boolean {
    const { failure } = this.#shared(request) ?? {};
    return failure !== undefined && isForOthers(failure, request);
  }

  #run(request: ImageRequest, trace: LookupOptions['trace']): Promise<ImageFacts> {
    return this.#lookups.run(request, async (signal, hasWaited) => {
      const found = hasWaited ? this.peek(request) : undefined;
      return found ?? (await this.#ask(request, { signal, ...(trace && { trace }) }));
    });
  }

  /** Asks the source, which may confirm what is known by a cheaper request. */
  async #ask(request: ImageRequest, options: LookupOptions): Promise<ImageFacts> {
    const known = this.#newest(request);
    const { driftedAt = Number.NEGATIVE_INFINITY } = this.#shared(request) ?? this.#own(request) ?? {};
    const maxAgeMs = Math.min(request.maxAgeMs, this.#clock.monotonic() - driftedAt);
    const found = known ? { known: factsOf(known, request.image, false) } : {};
    const answer = await this.#lookups.ask({ ...request, maxAgeMs }, { ...options, ...found });
    return this.#lookups.isClosed ? answer : this.#record(request, answer);
  }

  /** Remembers the answer of the source. @returns what the request gets */
  #record(request: ImageRequest, answer: ImageFacts): ImageFacts {
    const { reference, image, namespace: owner = '' } = request;
    const own: Place = { key: keyOf(request), scope: scopeOf(request), owner };
    const known = knownOf(answer, request.maxAgeMs, this.#clock);
    if (known && isOf(known, reference)) {
      const place = isOfPod(answer) ? own : { ...own, scope: sharedScope };
      // No credentials were presented, so nobody knows for whom these facts are.
      if (isOfPod(answer) && own.scope === sharedScope) return answer;
      this.#know(place, known);
      if (answer.stale) this.#entries.fail(place, olderFacts);
      return answer;
    }
    const other = { code: 'digest-mismatch', message: 'the answer is about another digest' } as const;
    const error = answer.error ?? other;
    this.#metrics.failure(error.code);
    if (error.code === 'not-found') this.#file?.changed();
    this.#entries.fail(own, error);
    const older = error.code === 'not-found' ? undefined : this.#newest(request);
    if (older) return factsOf(older, image, true);
    return { ...answer, platforms: [], error };
  }

  #know(place: Place, known: Known): void {
    if (this.#entries.know(place, known) && place.scope === sharedScope) this.#file?.changed();
  }

  #failed({ image, serviceAccount }: ImageRequest, { error, retryAt }: Failure): ImageFacts {
    const retryAfterMs = Math.max(0, Math.ceil(retryAt - this.#clock.monotonic()));
    const credentialSource = serviceAccount ? 'service-account' : 'anonymous';
    const origin = { source: 'memory', credentialSource } as const;
    return failedFacts(image, { ...error, retryAfterMs }, this.#clock.now(), origin);
  }
}

/** Whether a failure without credentials tells nothing about a request that has some. */
function isForOthers({ error }: Failure, request: ImageRequest): boolean {
  return scopeOf(request) !== sharedScope && dependsOnCredentials(error);
}

/** Whether facts are about the digest that an image names. */
function isOf({ digest }: Known, reference: Reference): boolean {
  return reference.digest === undefined || reference.digest === digest;
}
