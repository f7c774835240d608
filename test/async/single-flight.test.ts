import t from 'tap';
import { RunTimeout, SingleFlight } from '../../src/async/single-flight.ts';
import { unlessAborted } from '../../src/async/wait.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';

const never = (signal: AbortSignal): Promise<never> => unlessAborted(new Promise(() => {}), signal);

t.test(
  'concurrent callers of one key share one run; other keys and later callers start another',
  async (t) => {
    const flights = new SingleFlight<string>();
    const started: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const run = (name: string) => async (): Promise<string> => {
      started.push(name);
      await promise;
      return name;
    };
    const results = [
      flights.run('a', run('first')),
      flights.run('a', run('second')),
      flights.run('b', run('third')),
    ];
    t.ok(flights.has('a') && flights.has('b'));
    resolve();
    t.strictSame(await Promise.all(results), ['first', 'first', 'third']);
    t.strictSame(started, ['first', 'third']);
    t.notOk(flights.has('a') || flights.has('b'));
    t.equal(await flights.run('a', run('fourth')), 'fourth');
  },
);

for (const [how, work] of [
  ['rejects', () => Promise.reject(new Error('lost'))],
  [
    'throws at once',
    () => {
      throw new Error('lost');
    },
  ],
] as const) {
  t.test(`a run that ${how} fails its callers, not later ones`, async (t) => {
    const clock = createFakeClock();
    const flights = new SingleFlight<string>({ limit: { ms: 1000, clock } });
    like(t, await Promise.allSettled([flights.run('a', work), flights.run('a', work)]), [
      { reason: { message: 'lost' } },
      { reason: { message: 'lost' } },
    ]);
    t.equal(flights.has('a'), false);
    t.equal(clock.pending, 0);
    t.equal(await flights.run('a', () => Promise.resolve('done')), 'done');
    t.equal(clock.pending, 0);
  });
}

t.test('the time limit aborts the signal', async (t) => {
  const clock = createFakeClock();
  const flights = new SingleFlight<unknown>({ limit: { ms: 15_000, clock } });
  const result = flights.run('a', never);
  const rejected = t.rejects(result, { name: 'RunTimeout', message: 'not answered within 15 s' });
  await clock.advance(14_999);
  t.ok(flights.has('a'));
  await clock.advance(1);
  await rejected;
  t.notOk(flights.has('a'));
  like(t, new RunTimeout(1), { code: 'timeout', temporary: true });
});

t.test('close aborts current and later runs', async (t) => {
  const flights = new SingleFlight<unknown>();
  const early = t.rejects(flights.run('a', never), { message: 'ending' });
  await flights.close(new Error('ending'));
  await early;
  await t.rejects(flights.run('b', never), { message: 'ending' });
  t.notOk(flights.has('a') || flights.has('b'));
});

t.test('an aborted caller does not affect the others', async (t) => {
  for (const abortAbandoned of [false, true]) {
    const flights = new SingleFlight<string>({ abortAbandoned });
    const { promise, resolve } = Promise.withResolvers<string>();
    let signalOfRun: AbortSignal | undefined;
    const [first, second] = [new AbortController(), new AbortController()];
    const work = (signal: AbortSignal): Promise<string> => {
      signalOfRun = signal;
      return promise;
    };
    const another = (): Promise<string> => Promise.reject(new Error('a second run'));
    const one = flights.run('a', work, first.signal);
    const two = flights.run('a', another, second.signal);
    first.abort(new Error('first'));
    await t.rejects(one, { message: 'first' });
    t.equal(signalOfRun?.aborted, false);
    second.abort(new Error('second'));
    await t.rejects(two, { message: 'second' });
    t.equal(signalOfRun?.aborted, abortAbandoned);
    const three = flights.run('a', another);
    resolve('done');
    t.equal(await three, 'done', 'it can be joined until it ends');
    await t.rejects(flights.run('b', work, AbortSignal.abort(new Error('before'))), { message: 'before' });
    t.notOk(flights.has('b'));
  }
});

t.test('a caller that joined an aborted run starts another if it fails', async (t) => {
  const flights = new SingleFlight<string>({ abortAbandoned: true });
  const { promise, reject } = Promise.withResolvers<string>();
  const gone = new AbortController();
  const abandoned = flights.run('a', () => promise, gone.signal);
  gone.abort(new Error('gone'));
  await t.rejects(abandoned, { message: 'gone' });
  const joined = flights.run('a', () => Promise.resolve('another'));
  const impatient = new AbortController();
  const left = flights.run('a', () => Promise.resolve('another'), impatient.signal);
  impatient.abort(new Error('left'));
  await t.rejects(left, { message: 'left' });
  reject(new Error('aborted'));
  t.equal(await joined, 'another');
});
