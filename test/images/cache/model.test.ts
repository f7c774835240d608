/**
 * The cache beside a reference model, in random sequences of requests, answers, time, drift and restarts. The
 * model says what each request gets, and what the source is asked.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t from 'tap';
import { FactsCache } from '../../../src/images/cache/cache.ts';
import { FactsFile } from '../../../src/images/cache/facts-file.ts';
import type {
  FactsError,
  FactsErrorCode,
  ImageFacts,
  ImageFactsSource,
  ImageRequest,
  LookupOptions,
} from '../../../src/images/facts/facts.ts';
import { recordingLog } from '../../support/captured.ts';
import { sized } from '../../support/exhaustive.ts';
import { digestOf, factsOf, failureOf, requestFor } from '../../support/facts.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { clockOfFacts, day, minute } from '../support.ts';

const tags = ['docker.io/library/a:1', 'corp.example/c:1'] as const;
const digestsOf = (tag: string): string[] => [0, 1, 2].map((version) => digestOf(`${tag} ${version}`));
const images = [...tags, `docker.io/library/a@${digestsOf(tags[0])[0]}`];
const spellings: Readonly<Record<string, string>> = { [tags[0]]: 'a:1' };
const refreshMs = 15 * minute;
const timeoutMs = 15_000;

/** What the registry says of an image. */
interface Answer {
  /** Index of the digest that the tag names, or how lookups fail. Another one than the first is no answer about a digest. */
  readonly is: 0 | 1 | 2 | FactsErrorCode;
  /** Who has access: all, or who presents the secret `x`, or the account `a`. Others are refused. */
  readonly access: 'all' | 'secret' | 'account';
  readonly retryAfterMs: number | undefined;
  /** Longer than the time limit of a lookup: never. */
  readonly takesMs: number;
}

const artifact: FactsError = { code: 'not-an-image', message: 'a chart' };

function answerTo(
  { image, reference, pullCredentials, serviceAccount }: ImageRequest,
  answer: Answer,
): ImageFacts {
  const { is, access, retryAfterMs, takesMs } = answer;
  if (takesMs > timeoutMs) return failureOf(image, 'timeout');
  if (is === 'not-an-image') return factsOf(image, { platforms: [], error: artifact });
  if (typeof is === 'string') return failureOf(image, is, retryAfterMs);
  const hasAccess =
    access === 'all' ||
    (access === 'secret' ? pullCredentials.some(({ id }) => id === 'x') : serviceAccount?.name === 'a');
  if (!hasAccess) return failureOf(image, 'unauthorized', retryAfterMs);
  const digest = digestsOf(reference.digest === undefined ? keyOf(image) : tags[0])[is];
  const credentialSource = ({ all: 'anonymous', secret: 'pull-secret', account: 'service-account' } as const)[
    access
  ];
  return factsOf(image, { credentialSource, ...(digest !== undefined && { digest }) });
}

const keyOf = (image: string): string => (image === 'a:1' ? tags[0] : image);

interface Known {
  readonly digest: string | undefined;
  readonly error: FactsErrorCode | undefined;
  readonly at: number;
}

interface ModelEntry {
  known?: Known | undefined;
  failure?:
    { readonly code: FactsErrorCode; readonly attempts: number; readonly retryAt: number } | undefined;
  /** Older facts do not count. */
  driftedAt?: number;
}

/** What a request gets: facts of a digest, perhaps stale, or an error; `undefined`: a lookup is needed. */
type Given = (Omit<Known, 'at'> & { readonly stale: boolean }) | { readonly error: string } | undefined;

const answersOfRegistry = ['not-found', 'unauthorized', 'forbidden'];

/** Without single flight and bounds. A lookup takes time, as if the one who asks waited. */
class Model {
  readonly entries = new Map<string, ModelEntry>();
  readonly registry = new Map<string, Answer>();
  now = 0;
  /** Each lookup with its credentials, and the digest that the source has to confirm. */
  readonly lookups: string[] = [];

  scopeOf({ pullCredentials, serviceAccount }: ImageRequest): string {
    const ids = [...new Set(pullCredentials.map(({ id }) => id))].sort().join(',');
    return `${ids}|${serviceAccount?.name ?? ''}`;
  }

  entry(image: string, scope: string): ModelEntry {
    const key = `${keyOf(image)} ${scope}`;
    const entry = this.entries.get(key) ?? {};
    this.entries.set(key, entry);
    return entry;
  }

  shared({ image, reference: { digest } }: ImageRequest): ModelEntry {
    const entry = this.entry(image, '|');
    if (entry.known || digest === undefined) return entry;
    const tag = this.entry(`${image.slice(0, image.indexOf('@'))}:1`, '|');
    return tag.known?.digest === digest ? tag : entry;
  }

  own(request: ImageRequest): ModelEntry | undefined {
    const scope = this.scopeOf(request);
    return scope === '|' ? undefined : this.entry(request.image, scope);
  }

  isFailing({ failure }: ModelEntry): boolean {
    return failure !== undefined && this.now < failure.retryAt;
  }

  /** A failure without credentials tells nothing about others. */
  isRefused(request: ImageRequest, whileItLasts = true): boolean {
    const shared = this.shared(request);
    if (!this.own(request) || !shared.failure || (whileItLasts && !this.isFailing(shared))) return false;
    return [...answersOfRegistry, 'rate-limited'].includes(shared.failure.code);
  }

  peek(request: ImageRequest): Given {
    const shared = this.isRefused(request) ? undefined : this.shared(request);
    const visible = [shared, this.own(request)].filter((entry) => entry !== undefined);
    for (const entry of visible) {
      if (!entry.known || this.now - entry.known.at >= request.maxAgeMs) continue;
      const isDue = Number.isFinite(request.maxAgeMs) && this.now - entry.known.at >= refreshMs;
      const stale = isDue && this.isFailing(entry);
      const given = givenOf(entry.known, stale);
      if (isDue && !stale) this.lookUp(entry === shared ? anonymous(request) : request);
      return given;
    }
    for (const entry of visible) {
      if (!this.isFailing(entry)) continue;
      return entry.known ? givenOf(entry.known, true) : { error: entry.failure?.code ?? '' };
    }
    return undefined;
  }

  get(request: ImageRequest): { given: Given; tookMs: number } {
    const given = this.peek(request);
    if (given) return { given, tookMs: 0 };
    const before = this.now;
    return { given: this.lookUpFirst(request), tookMs: this.now - before };
  }

  /** With shared facts, first without credentials. */
  lookUpFirst(request: ImageRequest): Given {
    if (this.own(request) && this.shared(request).known && !this.isRefused(request, false)) {
      const given = this.lookUp(anonymous(request));
      if (!this.isRefused(request, false)) return given;
    }
    return this.lookUp(request);
  }

  newest(request: ImageRequest): Known | undefined {
    const known = [this.shared(request).known, this.own(request)?.known].filter((each) => each !== undefined);
    return known.reduce<Known | undefined>((a, b) => (a && a.at >= b.at ? a : b), undefined);
  }

  lookUp(request: ImageRequest): Given {
    const { image, reference } = request;
    const said = answerOf(this.registry, image);
    this.lookups.push(`${image} ${this.scopeOf(request)} ${this.newest(request)?.digest}`);
    const { digest, error, credentialSource } = answerTo(request, said);
    this.now += Math.min(timeoutMs, said.takesMs);
    if (error && error !== artifact) return this.fail(request, error);
    if (reference.digest !== undefined && digest !== reference.digest)
      return this.fail(request, { code: 'digest-mismatch' });
    const known = { digest, error: error?.code, at: this.now };
    this.know(image, credentialSource === 'anonymous' ? '|' : this.scopeOf(request), known);
    return givenOf(known, false);
  }

  know(image: string, scope: string, known: Known): void {
    const entry = this.entry(image, scope);
    if (known.at < Math.max(entry.known?.at ?? -Infinity, entry.driftedAt ?? -Infinity)) return;
    Object.assign(entry, { known, failure: undefined });
  }

  fail(request: ImageRequest, { code, retryAfterMs }: Pick<FactsError, 'code' | 'retryAfterMs'>): Given {
    const entry = this.entry(request.image, this.scopeOf(request));
    const before = entry.failure;
    const attempts = before && this.now < before.retryAt + minute ? before.attempts + 1 : 1;
    // Without jitter, a pause has half of its length.
    const usual = answersOfRegistry.includes(code)
      ? 30_000
      : Math.min(minute, 1000 * 2 ** (attempts - 1)) / 2;
    const asked = retryAfterMs === undefined ? usual : Math.max(1000, retryAfterMs);
    entry.failure = { code, attempts, retryAt: this.now + Math.min(15 * minute, asked) };
    if (code === 'not-found') entry.known = undefined;
    const older = code === 'not-found' ? undefined : this.newest(request);
    return older ? givenOf(older, true) : { error: code };
  }

  forget(tag: string, digest: string): void {
    for (const [key, { known, failure, driftedAt }] of this.entries) {
      const isThere = known !== undefined || failure !== undefined || driftedAt !== undefined;
      if (isThere && key.startsWith(`${tag} `) && known?.digest !== digest)
        this.entries.set(key, { driftedAt: this.now });
    }
  }

  /** Only shared facts survive. */
  restart(): void {
    for (const [key, { known }] of this.entries) {
      if (known && key.endsWith(' |')) this.entries.set(key, { known });
      else this.entries.delete(key);
    }
  }
}

function anonymous(ofPod: ImageRequest): ImageRequest {
  const { serviceAccount: _, ...request } = ofPod;
  return { ...request, pullCredentials: [] };
}

function answerOf(registry: ReadonlyMap<string, Answer>, image: string): Answer {
  return registry.get(keyOf(image)) ?? { is: 0, access: 'all', retryAfterMs: undefined, takesMs: 0 };
}

function givenOf({ digest, error }: Omit<Known, 'at'>, stale: boolean): Given {
  return { digest, error, stale };
}

function givenBy(facts: ImageFacts | undefined): Given {
  if (facts === undefined) return undefined;
  const { digest, stale, error } = facts;
  if (error && error.code !== artifact.code) return { error: error.code };
  return givenOf({ digest, error: error?.code }, stale);
}

const anyRequest = fc
  .record({
    image: fc.constantFrom(...images),
    isShort: fc.boolean(),
    namespace: fc.constantFrom('team', 'other'),
    credentials: fc.constantFrom<string[]>([], [], ['x'], ['y'], ['y', 'x'], ['x', 'y', 'x']),
    account: fc.constantFrom(undefined, undefined, undefined, 'a', 'b'),
    maxAgeMs: fc.constantFrom(0, 5000, 20 * minute, 7 * day, Infinity),
  })
  .map(({ image, isShort, account, maxAgeMs, ...more }): ImageRequest => {
    const request = requestFor((isShort && spellings[image]) || image, more);
    return {
      ...request,
      ...(request.reference.digest === undefined && { maxAgeMs }),
      ...(account !== undefined && { serviceAccount: { namespace: 'team', name: account } }),
    };
  });

const anyAnswer = fc.record({
  is: fc.constantFrom<Answer['is']>(
    0,
    1,
    2,
    0,
    1,
    'not-an-image',
    'not-found',
    'forbidden',
    'unavailable',
    'unavailable',
    'unavailable',
    'rate-limited',
  ),
  access: fc.constantFrom<Answer['access']>('all', 'all', 'secret', 'account'),
  retryAfterMs: fc.constantFrom(undefined, undefined, undefined, 200, 40_000, 3_600_000),
  takesMs: fc.constantFrom(0, 0, 0, 2000, 20_000),
});

/** Two callers at the same time share a lookup, and each may lose patience before it ends. */
const get = { callers: fc.constantFrom(1, 2), patienceMs: fc.constantFrom(60_000, 60_000, 1000) };
const answer = { image: fc.constantFrom(...images), answer: anyAnswer };
const pass = { ms: fc.constantFrom(1, 600, 600, 600, 3000, 29_990, 31_000, 16 * minute, 8 * day) };
/** Shared facts of a tag from elsewhere, or that it drifted. */
const tell = {
  isDrift: fc.boolean(),
  image: fc.constantFrom(...tags),
  version: fc.nat(2),
  agoMs: fc.constantFrom(0, 2000, 20 * minute),
};
const kind = <Kind extends string>(name: Kind) => ({ kind: fc.constant(name) });

/** A few requests in each walk, so that their lookups meet. */
const steps = fc.array(anyRequest, { minLength: 1, maxLength: 6 }).chain((requests) => {
  const request = { request: fc.constantFrom(...requests) };
  return fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.record({ ...kind('get'), ...request, ...get }) },
      { weight: 2, arbitrary: fc.record({ ...kind('peek'), ...request }) },
      { weight: 3, arbitrary: fc.record({ ...kind('answer'), ...answer }) },
      { weight: 4, arbitrary: fc.record({ ...kind('pass'), ...pass }) },
      { weight: 2, arbitrary: fc.record({ ...kind('tell'), ...tell }) },
      { weight: 1, arbitrary: fc.record(kind('restart')) },
    ),
    { minLength: 20, maxLength: 60, size: 'max' },
  );
});
type Step = typeof steps extends fc.Arbitrary<(infer One)[]> ? One : never;

/** One cache, which restarts with its file, beside the model. */
class Walk {
  readonly #model = new Model();
  readonly #clock = clockOfFacts();
  readonly #log = recordingLog().log;
  readonly #start = this.#clock.monotonic();
  readonly #lookups: string[] = [];
  readonly #path: string;
  #cache!: FactsCache;

  constructor(path: string) {
    this.#path = path;
  }

  async open(): Promise<void> {
    const [clock, log] = [this.#clock, this.#log];
    const file = new FactsFile({ path: this.#path, clock, log });
    const source = { lookup: (...asked: Parameters<ImageFactsSource['lookup']>) => this.#answer(...asked) };
    this.#cache = new FactsCache({ source, file, clock, log, refreshAfterMs: () => refreshMs });
    await file.load(this.#cache);
  }

  close(): Promise<void> {
    return this.#cache.close();
  }

  async do(step: Step): Promise<void> {
    // In the cache, not even two changes come at the same time.
    this.#model.now += 1;
    await this.#catchUp();
    if (step.kind === 'get') await this.#get(step.request, step.callers, step.patienceMs);
    else if (step.kind === 'peek')
      equal(givenBy(this.#cache.peek(step.request)), this.#model.peek(step.request));
    else if (step.kind === 'answer') this.#model.registry.set(step.image, step.answer);
    else if (step.kind === 'pass') this.#model.now += step.ms;
    else if (step.kind === 'restart') {
      await this.#cache.close();
      await this.open();
      this.#model.restart();
    } else {
      const { image, version, agoMs } = step;
      const digest = digestsOf(image)[version] ?? '';
      if (step.isDrift) {
        this.#cache.forget([{ image, digest }]);
        this.#model.forget(image, digest);
      } else {
        const confirmedAt = new Date(this.#clock.now() - agoMs).toISOString();
        this.#cache.learn(factsOf(image, { digest, source: 'memory', confirmedAt }));
        this.#model.know(image, '|', { digest, error: undefined, at: this.#model.now - agoMs });
      }
    }
    await this.#catchUp();
    equal(this.#lookups, this.#model.lookups);
  }

  async #get(request: ImageRequest, callers: number, patienceMs: number): Promise<void> {
    const stop = new AbortController();
    const cancel = this.#clock.timer(patienceMs, () => stop.abort(new Error('no patience')));
    const answers = Array.from({ length: callers }, () => this.#cache.get(request, { signal: stop.signal }));
    const found: unknown[] = [];
    for (const facts of answers)
      facts.then(
        (given) => found.push(given.image === request.image ? givenBy(given) : given.image),
        () => found.push('no patience'),
      );
    const { given, tookMs } = this.#model.get(request);
    await this.#catchUp();
    cancel();
    equal(
      found,
      answers.map(() => (tookMs >= patienceMs ? 'no patience' : given)),
    );
  }

  /** Lets time pass as in the model, and lookups end. */
  #catchUp(): Promise<void> {
    return this.#clock.advance(this.#start + this.#model.now - this.#clock.monotonic());
  }

  async #answer(request: ImageRequest, { known, signal }: LookupOptions): Promise<ImageFacts> {
    this.#lookups.push(`${request.image} ${this.#model.scopeOf(request)} ${known?.digest}`);
    const said = answerOf(this.#model.registry, request.image);
    const answer = answerTo(request, said);
    await this.#clock.sleep(said.takesMs, neverAborted);
    equal(signal.aborted, said.takesMs > timeoutMs);
    return { ...answer, confirmedAt: new Date(this.#clock.now()).toISOString() };
  }
}

function equal(found: unknown, wanted: unknown): void {
  const [is, should] = [found, wanted].map((value) => JSON.stringify(value));
  if (is !== should) throw new Error(`${is} instead of ${should}`);
}

t.test('property: the cache answers as its model, with the same lookups', async (t) => {
  const path = join(t.testdir(), 'facts');
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      rmSync(path, { force: true });
      const walk = new Walk(path);
      await walk.open();
      for (const one of all) await walk.do(one);
      await walk.close();
    }),
    { numRuns: sized(200, 10_000) },
  );
});
