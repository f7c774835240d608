/**
 * Memory against a model, with any order of questions, answers, failures and time. The facts of each step name the credentials
 * that the registry saw, so that an answer which reaches somebody else is seen at once.
 */
import * as fc from 'fast-check';
import t from 'tap';
import type { FactsErrorCode, ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { scopeOf, sharedScope, withAccount } from '../../../src/images/memory/scope.ts';
import { bench, day, digestOf, facts, failure, minute, question, settled, type Bench } from '../support.ts';

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
  /** Index of the first question without an answer. */
  readonly open: Set<number>;
  readonly waiting: Promise<unknown>[];
  step: number;
}

type Command = fc.AsyncCommand<object, World>;

/** What an answer reveals: the scope it was learned under, in the media type. */
function learnedBy(scope: string): string {
  return `application/learned-by-${scope === '' ? 'anybody' : scope}`;
}

/** The same for a failure that holds for one service account, in its message. */
function failedFor({ pullCredentials, serviceAccount }: ImageRequest): string {
  return `failed for ${withAccount(scopeOf(pullCredentials), serviceAccount)}`;
}

function checkAccount(asked: ImageRequest, answer: ImageFacts): void {
  const told = answer.digest === undefined ? answer.error?.message : answer.mediaType;
  const mine = learnedBy(withAccount(sharedScope, asked.serviceAccount));
  // A time-out tells nothing of anybody.
  if (answer.error?.code === 'timeout' || told === mine || told === failedFor(asked)) return;
  throw new Error(`${told} reached ${asked.serviceAccount?.name ?? 'who names no account'}`);
}

/** An answer may be seen by who presents the credentials that it was learned with. */
function check(asked: ImageRequest, answer: ImageFacts | undefined): void {
  if (!answer) return;
  if (answer.image !== asked.image) throw new Error(`facts of ${answer.image} for ${asked.image}`);
  if (answer.credentialSource === 'service-account') checkAccount(asked, answer);
  if (answer.credentialSource !== 'pull-secret') return;
  const ids = asked.pullCredentials.map(({ id }) => id);
  const mine = [scopeOf(asked.pullCredentials), ...ids].map(learnedBy);
  if (!mine.includes(answer.mediaType ?? '')) {
    throw new Error(`${answer.mediaType} reached ${ids.join(' ') || 'nobody'}`);
  }
}

function holds(world: World): void {
  const { memory, inspector, open } = world;
  if (memory.bytes > maxBytes) throw new Error(`${memory.bytes} bytes`);
  for (const index of inspector.asked.keys()) if (index >= world.step) open.add(index);
  world.step = inspector.asked.length;
  const keys = [...open].map((index) => {
    const {
      reference,
      pullCredentials,
      serviceAccount: account,
    } = inspector.asked[index]?.question ?? question('none');
    const scope = withAccount(scopeOf(pullCredentials), account);
    return `${reference.repository} ${reference.tag} ${reference.digest} ${scope}`;
  });
  // One that anybody may join, and one apart for who joined that of another account.
  for (const [key, same] of Map.groupBy(keys, (each) => each)) {
    if (same.length > 2) throw new Error(`${same.length} flights for one key: ${key}`);
  }
  for (const one of memory.shared()) {
    if (one.credentialSource === 'pull-secret' || one.credentialSource === 'service-account')
      throw new Error(`shared what is a pod’s own: ${one.image}`);
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

const anyQuestion = fc
  .record({
    image: fc.constantFrom(...images),
    credentials: fc.constantFrom(...presented),
    pullPolicy: fc.constantFrom(...policies),
    account: fc.constantFrom(...accounts),
  })
  .map(({ image, account: name, ...more }): ImageRequest => {
    const asked = question(image, more);
    return name === undefined ? asked : { ...asked, serviceAccount: { namespace: 'team', name } };
  });

function shown({ image, pullPolicy, pullCredentials, serviceAccount }: ImageRequest): string {
  return `${image} ${pullPolicy} ${withAccount(scopeOf(pullCredentials), serviceAccount)}`;
}

const recall = anyQuestion.map((asked) =>
  command(`recall ${shown(asked)}`, ({ memory }) => {
    const answer = memory.recall(asked);
    check(asked, answer);
    check(asked, memory.lastKnown(asked));
    if (asked.reference.digest !== undefined && answer && answer.error === undefined && answer.stale) {
      throw new Error('facts of a digest are never stale');
    }
  }),
);

const ask = fc.tuple(anyQuestion, fc.boolean()).map(([asked, patient]) =>
  command(`ask ${shown(asked)} ${patient ? '' : 'and leave'}`, async ({ memory, waiting }) => {
    const controller = new AbortController();
    const answer = memory.lookup(asked, { signal: controller.signal });
    if (patient) {
      waiting.push(answer.then((given) => check(asked, given)));
      return;
    }
    await settled();
    controller.abort(new Error('left'));
    waiting.push(
      answer.then(
        (given) => check(asked, given),
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
      const asked = index === undefined ? undefined : inspector.asked[index];
      if (index === undefined || !asked) return;
      open.delete(index);
      const { image, reference, pullCredentials, serviceAccount } = asked.question;
      const bySecret = by === 'secret' && pullCredentials.length > 0;
      const byAccount = by === 'account' && serviceAccount !== undefined;
      const scope = bySecret ? scopeOf(pullCredentials) : '';
      await asked.answer(
        code !== undefined
          ? failureFor(asked.question, code, by === 'account')
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

function failureFor(asked: ImageRequest, code: FactsErrorCode, perAccount: boolean): ImageFacts {
  const failed = failure(asked.image, code);
  if (!perAccount) return failed;
  return { ...failed, credentialSource: 'service-account', error: { code, message: failedFor(asked) } };
}

const pass = fc.constantFrom(1, 1000, 5000, 30_000, 15 * minute, 8 * day).map((ms) =>
  command(`pass ${ms}`, async ({ time, open, inspector }) => {
    await time.advance(ms);
    for (const index of open) if (inspector.asked[index]?.options.signal.aborted) open.delete(index);
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

t.test('memory keeps its promises whatever happens', async () => {
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
