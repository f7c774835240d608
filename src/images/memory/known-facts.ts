/**
 * What memory holds of images: facts and failures, each in the credential scope that may see it.
 *
 * Only `not-found` ends older facts. After any other failure they are returned, marked stale: pods whose
 * image is on their node start even while its registry refuses or is away.
 */
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { failedFacts, type FactsError, type ImageFacts, type ImageRequest } from '../facts/facts.ts';
import type { Reference } from '../references/reference.ts';
import { FactsStore, type Entry } from './store.ts';
import { Failures, isAnswer, type Failure } from './failures.ts';
import { confirmedAt, freshnessOf, freshUntil, type Freshness, type FreshnessSettings } from './freshness.ts';
import type { FactsMetrics } from './metrics.ts';
import {
  isPerAccount,
  keyOf,
  scopedKey,
  scopeOf,
  scopeOfFacts,
  scopeOfFailure,
  sharedScope,
  withAccount,
  type Scope,
} from './scope.ts';

interface KnownFactsOptions {
  /** Bound of facts and failures together, by the estimates of `size.ts`. */
  readonly maxBytes: number;
  /** Whether facts of a tag also answer for the digest that they name. */
  readonly tagsAnswerForDigests: boolean;
  readonly freshness: FreshnessSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: FactsMetrics;
  /** Called when shared facts were added, changed or removed. */
  readonly onChange: () => void;
}

/** Failures have room of their own, so that names of images that do not exist cannot push out facts. */
const failuresShare = 1 / 8;

const staleAnswer = { code: 'unavailable', message: 'the registry fails; older facts were given' } as const;

export class KnownFacts {
  readonly #options: KnownFactsOptions;
  readonly #clock: Clock;
  readonly #store: FactsStore;
  readonly #failures: Failures;
  #dependsOnAccounts = false;

  constructor(options: KnownFactsOptions) {
    const { maxBytes, clock, metrics } = options;
    this.#options = options;
    this.#clock = clock;
    this.#store = new FactsStore(maxBytes * (1 - failuresShare), () => metrics.evicted.inc());
    this.#failures = new Failures(maxBytes * failuresShare, clock);
  }

  get size(): number {
    return this.#store.size;
  }

  get bytes(): number {
    return this.#store.bytes + this.#failures.bytes;
  }

  /** Whether some facts or failures depended on a service account; in most clusters none does. */
  get dependsOnAccounts(): boolean {
    return this.#dependsOnAccounts;
  }

  /** The facts that this request may see, shared ones first. */
  *visible(request: ImageRequest): Generator<Entry> {
    const { reference, pullCredentials, serviceAccount } = request;
    const key = keyOf(request);
    const scopes = new Set([sharedScope, scopeOf(pullCredentials), ...pullCredentials.map(({ id }) => id)]);
    if (serviceAccount && this.#dependsOnAccounts) scopes.add(withAccount(sharedScope, serviceAccount));
    for (const scope of scopes) {
      const entry = this.#find(key, reference, scope);
      if (entry) yield entry;
    }
  }

  /** The newest facts that this request may see, however old. */
  newest(request: ImageRequest): Entry | undefined {
    const byAge = [...this.visible(request)].sort((a, b) => b.confirmedAt - a.confirmedAt);
    return byAge[0];
  }

  shared(request: ImageRequest): Entry | undefined {
    return this.#find(keyOf(request), request.reference, sharedScope);
  }

  #find(key: string, reference: Reference, scope: Scope): Entry | undefined {
    const { tagsAnswerForDigests } = this.#options;
    return tagsAnswerForDigests ? this.#store.find(key, reference, scope) : this.#store.get(key, scope);
  }

  freshness({ confirmedAt: at }: Entry, { reference, pullPolicy }: ImageRequest): Freshness {
    const age = this.#clock.monotonic() - at;
    return freshnessOf(age, reference.digest !== undefined, pullPolicy, this.#options.freshness);
  }

  touch(entry: Entry): void {
    this.#store.touch(entry, this.#clock.monotonic());
  }

  /** The failure that holds for exactly this request. */
  failureFor(request: ImageRequest): Failure | undefined {
    const { pullCredentials, serviceAccount } = request;
    const key = keyOf(request);
    const scope = scopeOf(pullCredentials);
    const failure = this.#failures.holding(scopedKey(key, scope));
    if (!serviceAccount || !this.#dependsOnAccounts) return failure;
    const own = this.#failures.holding(scopedKey(key, withAccount(scope, serviceAccount)));
    return own ?? (failure?.perAccount === true ? undefined : failure);
  }

  /** The failure of the latest attempt to confirm an entry. */
  failureToConfirm(entry: Entry, request: ImageRequest): Failure | undefined {
    return this.#failures.holding(scopedKey(keyOf(request), entry.scope));
  }

  /** How a registry has just refused this image to requests without credentials of a pod. */
  sharedRefusal(request: ImageRequest): Failure | undefined {
    const failure = this.#failures.holding(keyOf(request));
    return failure && isAnswer(failure.error.code) ? failure : undefined;
  }

  /** Keeps the result of a lookup. @param old facts to confirm, returned instead of a failure */
  record(request: ImageRequest, answer: ImageFacts, old: Entry | undefined): ImageFacts {
    const isSlow = answer.error?.code === 'timeout' && request.serviceAccount !== undefined;
    // If answers depend on accounts at all, slow credentials of one must not delay the others.
    const perAccount = isPerAccount(answer) || (this.#dependsOnAccounts && isSlow);
    if (perAccount) this.#dependsOnAccounts = true;
    const scope = scopeOfFailure(request, perAccount);
    const failureKey = scopedKey(keyOf(request), scope);
    this.#outdateBy(request, answer, old);
    if (answer.unchanged) {
      this.#failures.forget(failureKey);
      return old && old.digest === answer.digest ? this.factsOf(old, request, false) : answer;
    }
    if (isLasting(answer)) {
      if (answer.stale) this.#failures.note(failureKey, staleAnswer, perAccount);
      else this.#failures.forget(failureKey);
      this.keep(keyOf(request), answer, request);
      return answer;
    }
    const noDigest = { code: 'not-an-image', message: 'the answer names no digest' } as const;
    const error: FactsError = answer.error ?? noDigest;
    this.#options.metrics.failure(error.code);
    this.#failures.note(failureKey, error, perAccount);
    if (old === undefined) return answer;
    if (error.code !== 'not-found') return this.factsOf(old, request, true);
    if (old.scope === scope) {
      this.#store.remove(old);
      if (scope === sharedScope) this.#options.onChange();
    }
    return answer;
  }

  /** Keeps facts newer than those of the same image and scope; only shared ones without a request. */
  keep(key: string, facts: ImageFacts, request?: ImageRequest): void {
    if (!isLasting(facts) || facts.source === 'override') return;
    const scope = scopeOfFacts(facts, request);
    if (scope === undefined) return;
    const byDigest = key.includes('@');
    if (byDigest && !key.endsWith(`@${facts.digest}`)) {
      const { image, digest } = facts;
      this.#options.log.warn({ image, digest }, 'facts of another digest than requested are ignored');
      return;
    }
    const confirmed = this.#confirmedAt(facts, byDigest);
    const present = this.#store.get(key, scope);
    if (present && confirmed <= present.confirmedAt) return;
    this.#store.put(key, scope, facts, confirmed);
    if (scope === sharedScope) this.#options.onChange();
  }

  /** A tag names this digest now: its facts of other digests are forgotten, in every scope. */
  outdate(key: string, digest: string): void {
    if (this.#store.removeOthers(key, digest)) this.#options.onChange();
  }

  /** Only for checks for drift: it looks at everything that memory has. */
  #outdateBy(request: ImageRequest, { digest, stale }: ImageFacts, old: Entry | undefined): void {
    const { knownDigest } = request;
    if (knownDigest === undefined || digest === undefined || stale) return;
    if (digest !== knownDigest || (old && old.digest !== digest)) this.outdate(keyOf(request), digest);
  }

  /** The facts of an entry, for the image as the request writes it. */
  factsOf(entry: Entry, { image, reference }: ImageRequest, stale: boolean): ImageFacts {
    return this.#facts(entry, image, reference.digest !== undefined, stale);
  }

  failedFactsOf({ error, until, perAccount }: Failure, { image }: ImageRequest): ImageFacts {
    const retryAfterMs = Math.max(0, Math.ceil(until - this.#clock.monotonic()));
    return failedFacts(image, { ...error, retryAfterMs }, this.#wallClock(until), {
      source: 'memory',
      credentialSource: perAccount ? 'service-account' : 'anonymous',
    });
  }

  /** All shared facts, the most recently used first. */
  *allShared(): Generator<ImageFacts> {
    for (const entry of this.#store.shared()) {
      yield this.#facts(entry, entry.key, entry.key.includes('@'), false);
    }
  }

  #facts(entry: Entry, image: string, byDigest: boolean, stale: boolean): ImageFacts {
    const { mediaType, platforms, credentialSource, endpoint, error } = entry.details.value;
    const until = freshUntil(entry.confirmedAt, byDigest, this.#options.freshness);
    return {
      image,
      digest: entry.digest,
      ...(mediaType !== undefined && { mediaType }),
      platforms,
      source: 'memory',
      credentialSource,
      endpoint,
      freshUntil: new Date(this.#wallClock(until)).toISOString(),
      stale,
      ...(error && { error }),
    };
  }

  /** Durations are measured by the monotonic clock, so a wall clock that was set meanwhile does no harm. */
  #wallClock(monotonicMs: number): number {
    return this.#clock.now() + (monotonicMs - this.#clock.monotonic());
  }

  /** In monotonic time. Facts from a registry were confirmed now, whatever the agent's clock. */
  #confirmedAt(facts: ImageFacts, byDigest: boolean): number {
    const now = this.#clock.now();
    if (facts.source === 'registry') return this.#clock.monotonic();
    const confirmed = confirmedAt(Date.parse(facts.freshUntil), now, byDigest, this.#options.freshness);
    return this.#clock.monotonic() - (now - confirmed);
  }
}

/** Facts that hold as long as the digest does: the platforms of an image, or that the digest is no image. */
function isLasting(facts: ImageFacts): facts is ImageFacts & { readonly digest: string } {
  if (facts.digest === undefined || facts.unchanged) return false;
  return facts.error === undefined || facts.error.code === 'not-an-image';
}
