/**
 * The facts memory, which lets an admission be answered without waiting. It stands before the agents
 * (webhook, controller) or registries (agent). A request is answered by an override, else by shared facts,
 * then facts in the scopes of its credentials and service account (`scope.ts`), else by a failure that holds
 * for exactly this request (`failures.ts`), else by the source (`lookup-and-revalidate.ts`). Facts age
 * (`freshness.ts`): due ones are returned and confirmed in the background; expired ones are returned only
 * while the source fails, marked stale. Times inside the process are monotonic; only `freshUntil` is a date.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import { BoundedMap } from '../../async/bounded-map.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import type { ImageFacts, ImageFactsSource, ImageRequest, LookupOptions } from '../facts/facts.ts';
import { maxCachedLength, validReference } from '../references/reference.ts';
import { noOverrides, type Overrides } from '../sources/overrides.ts';
import type { FactsFile } from './disk.ts';
import { DriftedDigests } from './drifted.ts';
import type { Entry } from './store.ts';
import { isAnswer, type Failure } from './failures.ts';
import { defaultFreshness, freshnessOf, type FreshnessSettings } from './freshness.ts';
import { KnownFacts } from './known-facts.ts';
import { Lookups, type Trace } from './lookup-and-revalidate.ts';
import { createFactsMetrics, type FactsMetrics, type RecallResult } from './metrics.ts';
import { LookupPlaces } from './places.ts';
import { keyOf, sharedScope, withoutCredentials } from './scope.ts';

export interface FactsMemoryOptions {
  readonly source: ImageFactsSource;
  readonly log: Log;
  readonly freshness?: FreshnessSettings;
  readonly overrides?: Overrides;
  /** Bound of facts and failures together, by the estimates of `size.ts`. */
  readonly maxBytes?: number;
  /** Time limit of one lookup at the source, however many requests wait for it. */
  readonly lookupTimeoutMs?: number;
  /** Lookups in progress. */
  readonly concurrentLookups?: number;
  /** How many of these may be at one registry host. Default: a quarter. */
  readonly lookupsPerHost?: number | undefined;
  /** Whether a tag's facts also answer for its digest. Default: true. Not for agents: no proof. */
  readonly tagsAnswerForDigests?: boolean;
  /**
   * Whether namespaces share a lookup of an image. Default: true. Not if the source has a queue for each
   * namespace: then an image of one namespace would wait in the queue of another.
   */
  readonly namespacesShareLookups?: boolean;
  /** Keeps shared facts across restarts. */
  readonly file?: FactsFile;
  readonly metrics?: FactsMetrics;
  readonly clock?: Clock;
}

const mebibyte = 1_048_576;
const defaultLookupTimeoutMs = 15_000;
/** For a webhook or the controller: a few hundred for each busy namespace. */
const defaultConcurrentLookups = 2048;
/** Answers kept ready by the text of the image: as many images as a large cluster uses at a time. */
const readyAnswers = 4096;
/** A ready answer holds a date; it is made anew at times, in case the wall clock was set. */
const readyForMs = 60_000;

interface Recalled {
  readonly result: RecallResult;
  readonly facts: ImageFacts | undefined;
}

/** An answer for every pod that names the image by the same text. */
interface Ready extends Recalled {
  readonly entry: Entry;
  readonly byDigest: boolean;
  readonly madeAt: number;
  readonly overridesVersion: unknown;
}

const miss: Recalled = { result: 'miss', facts: undefined };

export class FactsMemory implements ImageFactsSource {
  readonly #clock: Clock;
  readonly #freshness: FreshnessSettings;
  readonly #overrides: Overrides;
  readonly #metrics: FactsMetrics;
  readonly #file: FactsFile | undefined;
  readonly #known: KnownFacts;
  readonly #lookups: Lookups;
  readonly #ready = new BoundedMap<string, Ready>(readyAnswers);
  readonly #drifted = new DriftedDigests();

  constructor(options: FactsMemoryOptions) {
    const { source, log, file, clock = systemClock, freshness = defaultFreshness } = options;
    const { tagsAnswerForDigests = true } = options;
    const { maxBytes = 64 * mebibyte, lookupTimeoutMs: timeoutMs = defaultLookupTimeoutMs } = options;
    const metrics = options.metrics ?? createFactsMetrics(createMetrics());
    this.#clock = clock;
    this.#freshness = freshness;
    this.#overrides = options.overrides ?? noOverrides;
    this.#metrics = metrics;
    this.#file = file;
    const onChange = (): void => file?.changed();
    const bounds = { maxBytes, tagsAnswerForDigests, freshness };
    this.#known = new KnownFacts({ ...bounds, clock, log, metrics, onChange });
    const recall = (request: ImageRequest): ImageFacts | undefined => this.#recall(request).facts;
    const { concurrentLookups = defaultConcurrentLookups } = options;
    const { lookupsPerHost = Math.ceil(concurrentLookups / 4), namespacesShareLookups = true } = options;
    const places = new LookupPlaces(concurrentLookups, lookupsPerHost);
    const revalidationPlaces = new LookupPlaces(Math.ceil(concurrentLookups / 4), lookupsPerHost);
    const known = this.#known;
    const limits = { timeoutMs, places, revalidationPlaces, namespacesShareLookups };
    this.#lookups = new Lookups({ source, known, recall, ...limits, clock, log, metrics });
    metrics.watch(this, this.#lookups);
    file?.keep(() => this.shared());
  }

  /**
   * The answer of memory: an override, facts that are fresh for the request's pull policy, or a failure
   * (facts with `error`). `undefined`: a lookup is needed. Never waits, but starts a revalidation if
   * one is due. A failure holds for exactly the pull credentials of the request: before the pod's Secrets
   * were read, it is not final.
   */
  recall(request: ImageRequest): ImageFacts | undefined {
    const { result, facts } = this.#recall(request);
    this.#metrics.recall(result);
    return facts;
  }

  /**
   * The answer of memory, else of the source. A lookup at the source is shared and has its own time limit: it
   * goes on when `signal` aborts. `trace` is called only for requests of this lookup.
   * @throws the signal's reason if it aborts first
   */
  async lookup(request: ImageRequest, { signal, trace }: LookupOptions): Promise<ImageFacts> {
    signal.throwIfAborted();
    const { facts: recalled } = this.#recall(request);
    if (recalled) return recalled;
    let facts = await unlessAborted(this.#ask(request, trace), signal);
    // Another agent may remember what the tag named before. `Always` makes it query the registry.
    if (this.#drifted.isOutdated(request, facts))
      facts = await unlessAborted(this.#ask({ ...request, pullPolicy: 'Always' }, trace), signal);
    return facts.image === request.image ? facts : { ...facts, image: request.image };
  }

  /** The answer of the source even if memory has facts; not kept. Waits as lookups do. @throws on abort */
  async lookupAgain(request: ImageRequest, { signal }: LookupOptions): Promise<ImageFacts> {
    signal.throwIfAborted();
    const facts = await unlessAborted(this.#lookups.lookUpAgain(request), signal);
    return facts.image === request.image ? facts : { ...facts, image: request.image };
  }

  /** The newest facts however old, marked stale; for when there is no time for a lookup. */
  lastKnown(request: ImageRequest): ImageFacts | undefined {
    const override = this.#overrides.find(request.image, request.reference);
    if (override) return override;
    const entry = this.#known.newest(request);
    return entry && this.#known.factsOf(entry, request, true);
  }

  /** The levels of x86-64 that overrides state: no part of facts, which travel. */
  get levelOf(): Overrides['levelOf'] {
    return this.#overrides.levelOf;
  }

  /** Takes shared facts from another memory. Older facts never replace newer ones. */
  learn(facts: ImageFacts): void {
    const key = keyOfText(facts.image);
    if (key !== undefined) this.#known.keep(key, facts);
  }

  /** A tag names this digest now. It is looked up again unless the facts are about this digest. */
  outdate(image: string, digest: string): void {
    const key = keyOfText(image);
    if (key === undefined) return;
    this.#drifted.set(key, digest);
    this.#known.outdate(key, digest);
  }

  /** All shared facts, the most recently used first: never facts that depend on a pod's own credentials. */
  shared(): Iterable<ImageFacts> {
    return this.#known.allShared();
  }

  get bytes(): number {
    return this.#known.bytes;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Ends lookups and timers; writes the file. */
  async close(): Promise<void> {
    await this.#lookups.close();
    await this.#file?.close();
  }

  #recall(request: ImageRequest): Recalled {
    const ready = this.#recallReady(request);
    if (ready) return ready;
    const override = this.#overrides.find(request.image, request.reference);
    if (override) return { result: 'override', facts: override };
    for (const entry of this.#known.visible(request)) {
      const recalled = this.#recallEntry(entry, request);
      if (recalled) return recalled;
    }
    return this.#recallFailure(request);
  }

  /** The warm path: one look by the text of the image, without parsing or allocation. */
  #recallReady({ image, pullPolicy }: ImageRequest): Ready | undefined {
    // Answers in use are made anew every minute, which keeps their place without a write here.
    const ready = this.#ready.peek(image);
    if (!ready?.entry.listed || ready.overridesVersion !== this.#overrides.version) return undefined;
    const now = this.#clock.monotonic();
    if (now - ready.madeAt >= readyForMs) return undefined;
    const age = now - ready.entry.confirmedAt;
    if (freshnessOf(age, ready.byDigest, pullPolicy, this.#freshness) !== 'fresh') return undefined;
    this.#known.touch(ready.entry);
    return ready;
  }

  #recallEntry(entry: Entry, request: ImageRequest): Recalled | undefined {
    const freshness = this.#known.freshness(entry, request);
    if (freshness === 'fresh') return this.#recallFresh(entry, request);
    const failure = this.#known.failureToConfirm(entry, request);
    if (failure) {
      // A request with credentials of its own may have access to what is refused to all.
      if (entry.scope === sharedScope && isAnswer(failure.error.code)) return undefined;
    } else {
      if (freshness === 'expired') return undefined;
      this.#lookups.revalidate(request, entry);
    }
    this.#known.touch(entry);
    const stale = failure !== undefined;
    return { result: stale ? 'stale' : 'due', facts: this.#known.factsOf(entry, request, stale) };
  }

  #recallFresh(entry: Entry, request: ImageRequest): Recalled {
    this.#known.touch(entry);
    const { image, reference } = request;
    const facts = this.#known.factsOf(entry, request, false);
    if (entry.scope === sharedScope && image.length <= maxCachedLength) {
      this.#ready.set(image, {
        result: 'fresh',
        facts,
        entry,
        byDigest: reference.digest !== undefined,
        madeAt: this.#clock.monotonic(),
        overridesVersion: this.#overrides.version,
      });
    }
    return { result: 'fresh', facts };
  }

  #recallFailure(request: ImageRequest): Recalled {
    const failure = this.#known.failureFor(request);
    if (!failure) return miss;
    const old = failure.error.code === 'not-found' ? undefined : this.#known.newest(request);
    if (old) return { result: 'stale', facts: this.#known.factsOf(old, request, true) };
    return { result: 'failure', facts: this.#known.failedFactsOf(failure, request) };
  }

  /** With shared facts, the first lookup is without the pod's credentials, so that it serves all pods. */
  async #ask(request: ImageRequest, trace?: Trace): Promise<ImageFacts> {
    const shared = this.#known.shared(request);
    if (shared && hasCredentials(request) && !this.#known.sharedRefusal(request)) {
      const facts = await this.#lookups.lookup(withoutCredentials(request), shared, trace);
      const refusal = this.#known.sharedRefusal(request);
      if (!refusal || !mayHaveAccess(request, refusal)) return facts;
    }
    return this.#lookups.lookup(request, this.#known.newest(request), trace);
  }
}

function hasCredentials({ pullCredentials, serviceAccount }: ImageRequest): boolean {
  return pullCredentials.length > 0 || serviceAccount !== undefined;
}

function mayHaveAccess({ pullCredentials, serviceAccount }: ImageRequest, { perAccount }: Failure): boolean {
  return pullCredentials.length > 0 || (perAccount && serviceAccount !== undefined);
}

/** `undefined` for a text that is no reference. */
function keyOfText(image: string): string | undefined {
  const reference = validReference(image);
  return reference && keyOf({ reference });
}
