/**
 * Random sequences of lookups, answers, failures and time. Each answer names the credentials it was learned
 * with, so that a leak to another pod is found at once.
 */
import * as fc from 'fast-check';
import t from 'tap';
import type { FactsErrorCode, ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { scopeOf, sharedScope, withAccount } from '../../../src/images/memory/scope.ts';
import { bench, day, digestOf, facts, failure, minute, requestFor, settled, type Bench } from '../support.ts';

const maxBytes = 5000;
const images = ['a:1', 'b:1', 'corp.example/c:1', `a@${digestOf('a')}`];
const presented = [[], ['x'], ['y'], ['x', 'y'], ['y', 'x']];
const accounts = [undefined, undefined, 'a', 'b'];
const policies = ['Always', 'IfNotPresent', 'Never'] as const;
const codes: FactsErrorCode[] = [
  'not-found',
  'unauthorized',
  'forbidden',
  'rate-limited',
  'unavailable',
  'timeout',
];

interface World extends Bench {
  /** Indexes of the requests without an answer. */
  readonly open: Set<number>;
  readonly waiting: Promise<unknown>[];
  step: number;
}

type Command = fc.AsyncCommand<object, World>;

/** The media type of an answer: it names the scope it was learned under. */
function learnedBy(scope: string): string {
  return `application/learned-by-${scope === '' ? 'anybody' : scope}`;
}

/** The message of a failure that depends on a service account: it names the scope. */
function failedFor({ pullCredentials, serviceAccount }: ImageRequest): string {
  return `failed for ${withAccount(scopeOf(pullCredentials), serviceAccount)}`;
}

function checkAccount(request: ImageRequest, answer: ImageFacts): void {
  const revealed = answer.digest === undefined ? answer.error?.message : answer.mediaType;
  const mine = learnedBy(withAccount(sharedScope, request.serviceAccount));
  // A timeout reveals nothing.
  if (answer.error?.code === 'timeout' || revealed === mine || revealed === failedFor(request)) return;
  throw new Error(`${revealed} reached ${request.serviceAccount?.name ?? 'a lookup without an account'}`);
}

/** Only lookups that present the credentials of an answer may get it. */
function check(request: ImageRequest, answer: ImageFacts | undefined): void {
  if (!answer) return;
  if (answer.image !== request.image) throw new Error(`facts of ${answer.image} for ${request.image}`);
  if (answer.credentialSource === 'service-account') checkAccount(request, answer);
  if (answer.credentialSource !== 'pull-secret') return;
  const ids = request.pullCredentials.map(({ id }) => id);
  const mine = [scopeOf(request.pullCredentials), ...ids].map(learnedBy);
  if (!mine.includes(answer.mediaType ?? '')) {
    throw new Error(`${answer.mediaType} reached ${ids.join(' ') || 'a lookup without credentials'}`);
  }
}

function holds(world: World): void {
  const { memory, inspector, open } = world;
  if (memory.bytes > maxBytes) throw new Error(`${memory.bytes} bytes`);
  for (const index of inspector.lookups.keys()) if (index >= world.step) open.add(index);
  world.step = inspector.lookups.length;
  const keys = [...open].map((index) => {
    const {
      reference,
      pullCredentials,
      serviceAccount: account,
    } = inspector.lookups[index]?.request ?? requestFor('none');
    const scope = withAccount(scopeOf(pullCredentials), account);
    return `${reference.repository} ${reference.tag} ${reference.digest} ${scope}`;
  });
  // One that every lookup may join, and one for lookups that joined that of another account.
  for (const [key, same] of Map.groupBy(keys, (each) => each)) {
    if (same.length > 2) throw new Error(`${same.length} requests for one key: ${key}`);
  }
  for (const one of memory.shared()) {
    if (one.credentialSource === 'pull-secret' || one.credentialSource === 'service-account')
      throw new Error(`shared private facts: ${one.image}`);
  }
}

function command(name: string, act: (world: World) => Promise<void> | void): Command {
  return {
    check: () => true,
    run: async (_, world) => {
      await act(world);
      await settled();
      holds(world);
    },
    toString: () => name,
  };
}

const anyRequest = fc
  .record({
    image: fc.constantFrom(...images),
    credentials: fc.constantFrom(...presented),
    pullPolicy: fc.constantFrom(...policies),
    account: fc.constantFrom(...accounts),
  })
  .map(({ image, account: name, ...more }): ImageRequest => {
    const request = requestFor(image, more);
    return name === undefined ? request : { ...request, serviceAccount: { namespace: 'team', name } };
  });

function shown({ image, pullPolicy, pullCredentials, serviceAccount }: ImageRequest): string {
  return `${image} ${pullPolicy} ${withAccount(scopeOf(pullCredentials), serviceAccount)}`;
}

const recall = anyRequest.map((request) =>
  command(`recall ${shown(request)}`, ({ memory }) => {
    const answer = memory.recall(request);
    check(request, answer);
    check(request, memory.lastKnown(request));
    if (request.reference.digest !== undefined && answer && answer.error === undefined && answer.stale) {
      throw new Error('facts of a digest are never stale');
    }
  }),
);

const ask = fc.tuple(anyRequest, fc.boolean()).map(([request, patient]) =>
  command(`lookup ${shown(request)} ${patient ? '' : 'and abort'}`, async ({ memory, waiting }) => {
    const controller = new AbortController();
    const answer = memory.lookup(request, { signal: controller.signal });
    if (patient) {
      waiting.push(answer.then((given) => check(request, given)));
      return;
    }
    await settled();
    controller.abort(new Error('left'));
    waiting.push(
      answer.then(
        (given) => check(request, given),
        (error: unknown) => {
          if (!(error instanceof Error) || error.message !== 'left') throw error;
        },
      ),
    );
  }),
);

const answer = fc
  .record({
    pick: fc.nat(),
    code: fc.option(fc.constantFrom(...codes), { freq: 2, nil: undefined }),
    by: fc.constantFrom('anybody', 'secret', 'account'),
    version: fc.nat({ max: 3 }),
    size: fc.constantFrom(1, 1, 4, 20),
  })
  .map(({ pick, code, by, version, size }) =>
    command(`answer ${pick} ${code ?? ''} ${by} ${version}`, async (world) => {
      const { open, inspector } = world;
      const index = [...open][pick % Math.max(1, open.size)];
      const lookup = index === undefined ? undefined : inspector.lookups[index];
      if (index === undefined || !lookup) return;
      open.delete(index);
      const { image, reference, pullCredentials, serviceAccount } = lookup.request;
      const bySecret = by === 'secret' && pullCredentials.length > 0;
      const byAccount = by === 'account' && serviceAccount !== undefined;
      const scope = bySecret ? scopeOf(pullCredentials) : '';
      await lookup.resolve(
        code !== undefined
          ? failureFor(lookup.request, code, by === 'account')
          : facts(image, {
              digest: reference.digest ?? digestOf(`${image} ${version}`),
              mediaType: learnedBy(byAccount ? withAccount(sharedScope, serviceAccount) : scope),
              credentialSource: byAccount ? 'service-account' : bySecret ? 'pull-secret' : 'anonymous',
              platforms: Array.from({ length: size }, (_, number) => ({
                os: 'linux',
                architecture: `a${number}`,
              })),
            }),
      );
    }),
  );

function failureFor(request: ImageRequest, code: FactsErrorCode, perAccount: boolean): ImageFacts {
  const failed = failure(request.image, code);
  if (!perAccount) return failed;
  return { ...failed, credentialSource: 'service-account', error: { code, message: failedFor(request) } };
}

const pass = fc.constantFrom(1, 1000, 5000, 30_000, 15 * minute, 8 * day).map((ms) =>
  command(`pass ${ms}`, async ({ time, open, inspector }) => {
    await time.advance(ms);
    for (const index of open) if (inspector.lookups[index]?.options.signal.aborted) open.delete(index);
  }),
);

const learn = fc
  .tuple(fc.constantFrom(...images), fc.boolean(), fc.nat({ max: 60 }))
  .map(([image, bySecret, minutes]) =>
    command(`learn ${image} ${bySecret ? 'secret' : 'shared'}`, ({ memory, time }) => {
      memory.learn(
        facts(image, {
          source: 'memory',
          mediaType: learnedBy(bySecret ? 'stranger' : ''),
          credentialSource: bySecret ? 'pull-secret' : 'docker-config',
          freshUntil: new Date(time.now() + (minutes - 30) * minute).toISOString(),
        }),
      );
    }),
  );

t.test('property: no answer leaks, no request is duplicated, and memory is bounded', async () => {
  const commands = fc.commands([recall, recall, ask, ask, answer, answer, pass, learn], { maxCommands: 80 });
  await fc.assert(
    fc.asyncProperty(commands, async (all) => {
      const world: World = { ...bench({ maxBytes }), open: new Set(), waiting: [], step: 0 };
      await fc.asyncModelRun(() => ({ model: {}, real: world }), all);
      await world.memory.close();
      await Promise.all(world.waiting);
      if (world.time.pending > 0) throw new Error('timers are left');
    }),
    { numRuns: 400 },
  );
});
