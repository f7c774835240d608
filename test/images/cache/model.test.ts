/**
 * The cache beside a reference model, in random sequences of requests, answers, time, drift and restarts. The
 * model says what each request gets, and how often the source is asked.
 */
import * as fc from 'fast-check';
import t from 'tap';
import { FactsCache } from '../../../src/images/cache/cache.ts';
import type { FactsErrorCode, ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { recordingLog } from '../../support/captured.ts';
import { sized } from '../../support/exhaustive.ts';
import { digestOf, factsOf, failureOf, requestFor } from '../../support/facts.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { clockOfFacts, day, minute, settled } from '../support.ts';

const tags = ['docker.io/library/a:1', 'corp.example/c:1'] as const;
const digestsOf = (tag: string): string[] => [0, 1, 2].map((version) => digestOf(`${tag} ${version}`));
const images = [...tags, `docker.io/library/a@${digestsOf(tags[0])[0] ?? ''}`];
const refreshMs = 15 * minute;

/** What the registry says of an image. */
interface Answer {
  /** Index of the digest that the tag names, or how lookups fail. */
  readonly is: 0 | 1 | 2 | FactsErrorCode;
  /** Who has access: all, or who presents the secret `x`, or the account `a`. Others are refused. */
  readonly access: 'all' | 'secret' | 'account';
  readonly retryAfterMs: number | undefined;
}

function answerTo(
  { image, reference, pullCredentials, serviceAccount }: ImageRequest,
  answer: Answer,
): ImageFacts {
  const { is, access, retryAfterMs } = answer;
  if (typeof is === 'string') return failureOf(image, is, retryAfterMs);
  const hasAccess =
    access === 'all' ||
    (access === 'secret' ? pullCredentials.some(({ id }) => id === 'x') : serviceAccount?.name === 'a');
  if (!hasAccess) return failureOf(image, 'unauthorized', retryAfterMs);
  const digest = reference.digest ?? digestsOf(`${reference.repository}:${reference.tag}`)[is];
  const credentialSource = ({ all: 'anonymous', secret: 'pull-secret', account: 'service-account' } as const)[
    access
  ];
  return factsOf(image, { credentialSource, ...(digest !== undefined && { digest }) });
}

interface Known {
  readonly digest: string | undefined;
  readonly at: number;
}

interface ModelEntry {
  known?: Known | undefined;
  failure?:
    { readonly code: FactsErrorCode; readonly attempts: number; readonly retryAt: number } | undefined;
}

/** What a request gets: facts of a digest, perhaps stale, or an error; `undefined`: a lookup is needed. */
type Given =
  { readonly digest: string | undefined; readonly stale: boolean } | { readonly error: string } | undefined;

const answersOfRegistry = ['not-found', 'unauthorized', 'forbidden'];

/** By the table in the design: no single flight, no bounds, one request after the other. */
class Model {
  readonly entries = new Map<string, ModelEntry>();
  readonly registry = new Map<string, Answer>();
  now = 0;
  lookups = 0;

  scopeOf({ pullCredentials, serviceAccount }: ImageRequest): string {
    const ids = [...new Set(pullCredentials.map(({ id }) => id))].sort().join(',');
    return `${ids}|${serviceAccount?.name ?? ''}`;
  }

  entry(image: string, scope: string): ModelEntry {
    const key = `${image} ${scope}`;
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
      const isDue = request.reference.digest === undefined && this.now - entry.known.at >= refreshMs;
      const given = { digest: entry.known.digest, stale: isDue && this.isFailing(entry) };
      if (isDue && !given.stale) this.lookUp(entry === shared ? anonymous(request) : request);
      return given;
    }
    for (const entry of visible) {
      if (!this.isFailing(entry)) continue;
      return entry.known ? { digest: entry.known.digest, stale: true } : { error: entry.failure?.code ?? '' };
    }
    return undefined;
  }

  get(request: ImageRequest): Given {
    const found = this.peek(request);
    if (found) return found;
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
    this.lookups += 1;
    const { digest, error, credentialSource } = answerTo(request, answerOf(this.registry, request.image));
    if (!error) {
      const scope = credentialSource === 'anonymous' ? '|' : this.scopeOf(request);
      Object.assign(this.entry(request.image, scope), {
        known: { digest, at: this.now },
        failure: undefined,
      });
      return { digest, stale: false };
    }
    const entry = this.entry(request.image, this.scopeOf(request));
    const before = entry.failure;
    const attempts = before && this.now < before.retryAt + minute ? before.attempts + 1 : 1;
    // Without jitter, a pause has half of its length.
    const usual = answersOfRegistry.includes(error.code)
      ? 30_000
      : Math.min(minute, 1000 * 2 ** (attempts - 1)) / 2;
    const asked = error.retryAfterMs === undefined ? usual : Math.max(1000, error.retryAfterMs);
    entry.failure = { code: error.code, attempts, retryAt: this.now + Math.min(15 * minute, asked) };
    if (error.code === 'not-found') entry.known = undefined;
    const older = error.code === 'not-found' ? undefined : this.newest(request);
    return older ? { digest: older.digest, stale: true } : { error: error.code };
  }

  forget(tag: string, digest: string): void {
    for (const [key, entry] of this.entries)
      if (key.startsWith(`${tag} `) && entry.known?.digest !== digest) this.entries.delete(key);
  }

  /** Only shared facts survive. */
  restart(): void {
    for (const [key, entry] of this.entries) {
      if (entry.known && key.endsWith(' |')) entry.failure = undefined;
      else this.entries.delete(key);
    }
  }
}

function anonymous(ofPod: ImageRequest): ImageRequest {
  const { serviceAccount: _, ...request } = ofPod;
  return { ...request, pullCredentials: [] };
}

function answerOf(registry: ReadonlyMap<string, Answer>, image: string): Answer {
  return registry.get(image) ?? { is: 0, access: 'all', retryAfterMs: undefined };
}

function givenBy(facts: ImageFacts | undefined): Given {
  if (facts === undefined) return undefined;
  return facts.error ? { error: facts.error.code } : { digest: facts.digest, stale: facts.stale };
}

const anyRequest = fc
  .record({
    image: fc.constantFrom(...images),
    credentials: fc.constantFrom<string[]>([], ['x'], ['y'], ['y', 'x']),
    account: fc.constantFrom(undefined, undefined, undefined, 'a'),
    maxAgeMs: fc.constantFrom(0, 5000, 20 * minute, 7 * day),
  })
  .map(({ image, account, maxAgeMs, ...more }): ImageRequest => {
    const request = requestFor(image, more);
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
    'not-found',
    'forbidden',
    'unavailable',
    'rate-limited',
    'timeout',
  ),
  access: fc.constantFrom<Answer['access']>('all', 'all', 'secret', 'account'),
  retryAfterMs: fc.constantFrom(undefined, undefined, 200, 40_000, 3_600_000),
});

type Step =
  | { readonly kind: 'get' | 'peek'; readonly request: ImageRequest }
  | { readonly kind: 'answer'; readonly image: string; readonly answer: Answer }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'forget'; readonly image: (typeof tags)[number]; readonly version: number }
  | { readonly kind: 'restart' };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('get' as const), request: anyRequest }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('peek' as const), request: anyRequest }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('answer' as const),
        image: fc.constantFrom(...images),
        answer: anyAnswer,
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('pass' as const),
        ms: fc.constantFrom(1, 600, 3000, 29_999, 31_000, 16 * minute, 8 * day),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('forget' as const),
        image: fc.constantFrom(...tags),
        version: fc.nat(2),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  ),
  { minLength: 20, maxLength: 60, size: 'max' },
);

async function walk(all: readonly Step[]): Promise<void> {
  const model = new Model();
  const clock = clockOfFacts();
  const { log } = recordingLog();
  let lookups = 0;
  const source = {
    lookup: (request: ImageRequest) => {
      lookups += 1;
      const answer = answerTo(request, answerOf(model.registry, request.image));
      return Promise.resolve({ ...answer, confirmedAt: new Date(clock.now()).toISOString() });
    },
  };
  const open = (): FactsCache => new FactsCache({ source, clock, log, refreshAfterMs: () => refreshMs });
  let cache = open();
  for (const [index, step] of all.entries()) {
    const where = `step ${index}: ${step.kind}`;
    // In the cache, not even two requests are made at the same time.
    await clock.advance(1);
    model.now += 1;
    if (step.kind === 'get') {
      const facts = await cache.get(step.request, { signal: neverAborted });
      equal(where, givenBy(facts), model.get(step.request));
      if (facts.image !== step.request.image) throw new Error(`${where}: facts of ${facts.image}`);
    } else if (step.kind === 'peek')
      equal(where, givenBy(cache.peek(step.request)), model.peek(step.request));
    else if (step.kind === 'answer') model.registry.set(step.image, step.answer);
    else if (step.kind === 'pass') {
      await clock.advance(step.ms);
      model.now += step.ms;
    } else if (step.kind === 'forget') {
      const digest = digestsOf(step.image)[step.version] ?? '';
      cache.forget(step.image, digest);
      model.forget(step.image, digest);
    } else {
      const facts = [...cache.shared()];
      await cache.close();
      cache = open();
      for (const one of facts) cache.learn(one);
      model.restart();
    }
    await settled();
    equal(`${where}: lookups`, lookups, model.lookups);
  }
  await cache.close();
}

function equal(where: string, found: unknown, wanted: unknown): void {
  const [is, should] = [found, wanted].map((value) => JSON.stringify(value));
  if (is !== should) throw new Error(`${where}: ${is} instead of ${should}`);
}

t.test('property: the cache answers as its model, with as many lookups', async () => {
  await fc.assert(
    fc.asyncProperty(steps, (all) => walk(all)),
    { numRuns: sized(500, 20_000) },
  );
});
