/**
 * The cache of image facts, before the agents (webhook, controller) or the registries (agent, command line). A
 * request says how old an answer may be. `peek` answers from memory: from the image's shared entry, else from the
 * entry for the pod's credentials (`entry.ts`). `get` also looks up what is missing, once for each namespace and
 * age; the source merges these lookups. An answer that grows old is confirmed in the background.
 */
import { systemClock } from '../../async/clock.ts';
import { Overloaded } from '../../async/fair-semaphore.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import { limited, TimeLimitReached, unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts';
import {
  failedFacts,
  isOfPod,
  type FactsErrorCode,
  type ImageFacts,
  type ImageFactsSource,
  type ImageRequest,
  type LookupOptions,
} from '../facts/facts.ts';
import { validReference } from '../references/reference.ts';
import { noOverrides, type Overrides } from '../sources/overrides.ts';
import { Entries, bindFactsMetrics, type CountFailure } from './entries.ts';
import {
  factsOf,
  isFailing,
  isForOthers,
  knownOf,
  type Entry,
  type LookupFailure,
  type Known,
  keyOf,
  keyOfLookup,
  scopeOf,
  sharedScope,
  withoutCredentials,
} from './entry.ts';
import type { FactsFile } from './facts-file.ts';
import { createLookupPlaces } from './places.ts';

export interface FactsCacheOptions extends Partial<typeof defaults> {
  readonly source: ImageFactsSource;
  /** How many of the lookups in progress may be at one registry host. Default: a quarter. */
  readonly lookupsPerHost?: number | undefined;
  /** Keeps shared facts across restarts. */
  readonly file?: FactsFile | undefined;
  readonly metrics?: Metrics;
  readonly log: Log;
}

const defaults = {
  /** An older answer is confirmed in the background, milliseconds; read at each request. */
  refreshAfterMs: (): number => 15 * 60_000,
  /** Read at each request. */
  overrides: (): Overrides => noOverrides,
  /** `entries.ts` estimates the bytes. */
  maxBytes: 64 * 1_048_576,
  /** Time limit of one lookup, waiting for a place included, however many requests wait for it. */
  lookupTimeoutMs: 15_000,
  /** Lookups in progress. For a webhook or the controller: a few hundred for each busy namespace. */
  concurrentLookups: 2048,
  clock: systemClock,
};

const others = 'other images of this namespace or registry';
const olderFacts = { code: 'unavailable', message: 'the registry fails; older facts are used' } as const;

export class FactsCache {
  readonly #options: FactsCacheOptions & typeof defaults;
  readonly #countFailure: CountFailure;
  #entries: Entries;
  readonly #places: ReturnType<typeof createLookupPlaces>;
  readonly #lookups = new SingleFlight<ImageFacts>();
  #isClosed = false;

  constructor(given: FactsCacheOptions) {
    const options = { ...defaults, ...given };
    const { clock, concurrentLookups, lookupsPerHost = Math.ceil(concurrentLookups / 4) } = options;
    this.#options = options;
    this.#countFailure = bindFactsMetrics(options.metrics ?? createMetrics(), this);
    this.#entries = new Entries(options.maxBytes, clock);
    this.#places = createLookupPlaces(concurrentLookups, lookupsPerHost);
    options.file?.keep(() => this.shared());
  }

  /**
   * The answer without a lookup: an override, facts that are young enough, older facts or an error while
   * lookups fail. `undefined`: a lookup is needed. Confirms facts in the background when they grow old, but not
   * for a request that takes facts of any age.
   */
  peek(request: ImageRequest): ImageFacts | undefined {
    const override = this.#options.overrides().find(request.image, request.reference, request.shortName);
    if (override) return override;
    const now = this.#options.clock.monotonic();
    const shared = this.#entries.shared(request);
    // A lookup with the pod's credentials may do better than a refusal without them.
    const isRefused = shared && isFailing(shared, now) && isForOthers(shared, request);
    const visible = [isRefused ? undefined : shared, this.#entries.ofPod(request)];
    for (const entry of visible)
      if (entry?.known && now - entry.known.at < request.maxAgeMs)
        return this.#fresh(entry, entry.known, request, now);
    for (const entry of visible) {
      if (!entry?.failure || !isFailing(entry, now)) continue;
      const { known, failure } = entry;
      return known ? factsOf(known, request.image, true) : this.#failure(request, failure);
    }
    return undefined;
  }

  /**
   * The answer of `peek`, else of a lookup. A lookup has a time limit of its own: it goes on when
   * `signal` aborts. A failure is an answer.
   * @throws the signal's reason if it aborts first
   */
  async get(request: ImageRequest, { signal }: Pick<LookupOptions, 'signal'>): Promise<ImageFacts> {
    signal.throwIfAborted();
    const facts = this.peek(request) ?? (await unlessAborted(this.#lookUp(request), signal));
    return facts.image === request.image ? facts : { ...facts, image: request.image };
  }

  /** The level of x86-64 that an override states for an image. Absent if none states any. */
  get levelOf(): Overrides['levelOf'] {
    return this.#options.overrides().levelOf;
  }

  /** Takes shared facts from an agent or a file. Older facts never replace newer ones. */
  learn(facts: ImageFacts): void {
    const reference = validReference(facts.image);
    if (!reference || isOfPod(facts)) return;
    const known = knownOf(facts, reference, Number.POSITIVE_INFINITY, this.#options.clock);
    if (!known) return;
    this.#places.answered({ reference }, facts);
    if (this.#entries.know({ reference }, sharedScope, known, facts.stale)) this.#options.file?.changed();
  }

  /** Forgets everything. */
  clear(): void {
    const { maxBytes, clock } = this.#options;
    this.#entries = new Entries(maxBytes, clock);
  }

  /** Tags name these digests now: facts of other digests are forgotten, and older answers do not count. */
  forget(tags: Iterable<{ readonly image: string; readonly digest: string }>): void {
    const digests = new Map<string, string>();
    for (const { image, digest } of tags) {
      const reference = validReference(image);
      if (reference) digests.set(keyOf({ reference }), digest);
    }
    this.#entries.forgetOthers(digests);
    this.#options.file?.changed();
  }

  /** All shared facts, the newest first: never facts that depend on a pod's own credentials. */
  *shared(): Generator<ImageFacts> {
    for (const { key, known } of this.#entries.allShared()) yield factsOf(known, key, false);
  }

  get bytes(): number {
    return this.#entries.bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Ends lookups and timers; writes the file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lookups.close(new Error('the program is ending'));
    await this.#options.file?.close();
  }

  #fresh(entry: Entry, known: Known, request: ImageRequest, now: number): ImageFacts {
    this.#entries.use(entry, request.namespace);
    const refreshAfterMs = this.#options.refreshAfterMs();
    const isDue = Number.isFinite(request.maxAgeMs) && now - known.at >= refreshAfterMs;
    const stale = isDue && isFailing(entry, now);
    if (isDue && !stale) this.#refresh(entry, request, refreshAfterMs);
    return factsOf(known, request.image, stale);
  }

  /**
   * Confirms an entry in the background, unless pods need the places. An agent that confirmed it not long ago
   * need not do it again.
   */
  #refresh({ key }: Entry, request: ImageRequest, refreshAfterMs: number): void {
    const isShared = key === keyOf(request);
    const due = { ...(isShared ? withoutCredentials(request) : request), maxAgeMs: refreshAfterMs / 2 };
    const run = keyOfLookup(due);
    const leave = this.#isClosed || this.#lookups.has(run) ? undefined : this.#places.tryEnter(due);
    if (!leave) return;
    void this.#run(run, (signal) => this.#request(due, signal)).finally(leave);
  }

  /** With shared facts, the first lookup is without the pod's credentials, so that it serves all pods. */
  async #lookUp(request: ImageRequest): Promise<ImageFacts> {
    const isRefused = () => isForOthers(this.#entries.shared(request), request);
    if (scopeOf(request) !== sharedScope && this.#entries.shared(request)?.known && !isRefused()) {
      const facts = await this.#lookUpOnce(withoutCredentials(request));
      if (!isRefused()) return facts;
    }
    return this.#lookUpOnce(request);
  }

  /** Requests for the same image, scope, namespace and age wait for one lookup. */
  #lookUpOnce(request: ImageRequest): Promise<ImageFacts> {
    // The cause is neither the image nor its registry, so it is not remembered.
    const notStarted = (error: unknown) => this.#noAnswer(request, error, `: ${others} came first`);
    const start = (signal: AbortSignal) => this.#inPlace(request, signal).catch(notStarted);
    return this.#run(keyOfLookup(request), start);
  }

  #run(key: string, work: (signal: AbortSignal) => Promise<ImageFacts>): Promise<ImageFacts> {
    const { lookupTimeoutMs: ms, clock } = this.#options;
    return this.#lookups.run(key, (signal) => limited(ms, signal, work, clock.sleep));
  }

  /** Waits for a place. The answer may have come meanwhile. */
  async #inPlace(request: ImageRequest, signal: AbortSignal): Promise<ImageFacts> {
    signal.throwIfAborted();
    const leave = await this.#places.enter(request, signal);
    try {
      return this.peek(request) ?? (await this.#request(request, signal));
    } finally {
      leave();
    }
  }

  /** The answer of the source, which may confirm what is known by a cheaper request. */
  async #request(request: ImageRequest, signal: AbortSignal): Promise<ImageFacts> {
    const known = this.#entries.newest(request);
    const { driftedAt = Number.NEGATIVE_INFINITY } =
      this.#entries.shared(request) ?? this.#entries.ofPod(request) ?? {};
    const started = this.#options.clock.monotonic();
    const wanted = { ...request, maxAgeMs: Math.min(request.maxAgeMs, started - driftedAt) };
    const found = known ? { known: factsOf(known, request.image, false) } : {};
    const looking = this.#options.source.lookup(wanted, { signal, ...found });
    const answer = await unlessAborted(looking, signal).catch((error: unknown) =>
      this.#noAnswer(request, error),
    );
    // Warnings and events contain less.
    if (answer.error)
      this.#options.log.info({ image: request.image, ...answer.error }, 'an image could not be looked up');
    this.#places.answered(request, answer, this.#options.clock.monotonic() - started);
    return this.#isClosed ? answer : this.#record(wanted, answer);
  }

  /** The answer of a lookup that has none, or was not made. */
  #noAnswer({ image }: ImageRequest, error: unknown, why = ''): ImageFacts {
    const failed = (code: FactsErrorCode, message: string) =>
      failedFacts(image, { code, message }, this.#options.clock.now());
    if (this.#isClosed) return failed('unavailable', 'the program is ending');
    if (error instanceof TimeLimitReached) return failed('timeout', `${error.message}${why}`);
    if (error instanceof Overloaded)
      return failed('rate-limited', `too many ${others} are looked up; the next attempt is in a moment`);
    // A source answers with an error and does not throw one: this is a fault of ours.
    this.#options.log.error({ err: error, image }, 'the lookup of an image failed unexpectedly');
    return failed('unavailable', 'the lookup of the image failed unexpectedly; see the log');
  }

  /** Remembers the answer of the source. @returns what the request gets */
  #record(request: ImageRequest, answer: ImageFacts): ImageFacts {
    // An agent has an override that this process lacks. It holds as long as that agent has it.
    if (answer.source === 'override' && !answer.error) return answer;
    const known = knownOf(answer, request.reference, request.maxAgeMs, this.#options.clock);
    if (known) {
      const scope = isOfPod(answer) ? scopeOf(request) : sharedScope;
      // No credentials were presented, so nobody knows for whom these facts are.
      if (isOfPod(answer) && scope === sharedScope) return answer;
      const isNew = this.#entries.know(request, scope, known, answer.stale);
      if (isNew && scope === sharedScope) this.#options.file?.changed();
      if (answer.stale) this.#entries.fail(request, scope, olderFacts);
      return answer;
    }
    const other = { code: 'digest-mismatch', message: 'the answer is about another digest' } as const;
    const error = answer.error ?? other;
    this.#countFailure(error.code);
    if (error.code === 'not-found') this.#options.file?.changed();
    const { retryAt } = this.#entries.fail(request, scopeOf(request), error);
    const older = error.code === 'not-found' ? undefined : this.#entries.newest(request);
    if (older) return factsOf(older, request.image, true);
    return { ...answer, platforms: [], error: { ...error, retryAfterMs: this.#untilMs(retryAt) } };
  }

  /** What is remembered of a failure. */
  #failure({ image, serviceAccount }: ImageRequest, { error, retryAt }: LookupFailure): ImageFacts {
    const retryAfterMs = this.#untilMs(retryAt);
    const credentialSource = serviceAccount ? 'service-account' : 'anonymous';
    const origin = { source: 'memory', credentialSource } as const;
    return failedFacts(image, { ...error, retryAfterMs }, this.#options.clock.now(), origin);
  }

  #untilMs(retryAt: number): number {
    return Math.max(0, Math.ceil(retryAt - this.#options.clock.monotonic()));
  }
}
