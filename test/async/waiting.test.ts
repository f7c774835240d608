/** Callers that stop waiting. The cache's tests hold the rest: what is shared, the time limit, the end. */
import t from 'tap';
import { unlessAborted } from '../../src/async/wait.ts';
import { SingleFlight } from '../../src/async/single-flight.ts';
import { concurrently, createYielder } from '../../src/async/concurrently.ts';

t.test('unlessAborted settles like the promise, or rejects if the signal aborts first', async (t) => {
  const reason = new Error('no time');
  const controller = new AbortController();
  t.equal(await unlessAborted(Promise.resolve(1), controller.signal), 1);
  await t.rejects(unlessAborted(Promise.reject(new Error('own')), controller.signal), { message: 'own' });
  const waiting = t.rejects(unlessAborted(new Promise(() => {}), controller.signal), reason);
  controller.abort(reason);
  await waiting;
  await t.rejects(unlessAborted(Promise.resolve(1), controller.signal), reason, 'aborted before');
  await t.rejects(unlessAborted(Promise.reject(new Error('own')), controller.signal), reason, 'both');
});

/** Callers that stop waiting. The cache's tests hold the rest: what is shared, the time limit, the end. */

t.test('an aborted caller does not affect the others', async (t) => {
  const flights = new SingleFlight<string>();
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
  t.equal(signalOfRun?.aborted, true, 'nobody waits any more');
  const three = flights.run('a', another);
  resolve('done');
  t.equal(await three, 'done', 'it can be joined until it ends');
  await t.rejects(flights.run('b', work, AbortSignal.abort(new Error('before'))), { message: 'before' });
  t.notOk(flights.has('b'));
});

t.test('a caller that joined an aborted run starts another if it fails', async (t) => {
  const flights = new SingleFlight<string>();
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

t.test('results keep the order of the items, within the limit', async (t) => {
  let running = 0;
  let most = 0;
  const items = Array.from({ length: 50 }, (_, index) => index);
  const results = await concurrently(items, 7, async (item) => {
    running += 1;
    most = Math.max(most, running);
    for (let turns = (item * 7) % 5; turns >= 0; turns -= 1) await Promise.resolve();
    running -= 1;
    return item * 2;
  });
  t.strictSame(
    results,
    items.map((item) => item * 2),
  );
  t.equal(most, 7);
});

t.test('no items give no results', async (t) => {
  t.strictSame(await concurrently([], 5, () => Promise.reject(new Error('called'))), []);
});

t.test('after an error no more work starts', async (t) => {
  let started = 0;
  await t.rejects(
    concurrently([1, 2, 3, 4, 5, 6], 2, async (item) => {
      started += 1;
      await Promise.resolve();
      if (item === 1) throw new Error('first');
    }),
    { message: 'first' },
  );
  t.ok(started <= 3, `${started} were started`);
});

t.test('long work yields to the event loop regularly', async (t) => {
  const ending = new AbortController();
  const turn = createYielder(ending.signal);
  let others = 0;
  const ticking = setInterval(() => void others++, 1);
  const end = performance.now() + 500;
  let yields = 0;
  while (performance.now() < end) {
    const yielding = turn();
    if (!yielding) continue;
    yields++;
    await yielding;
  }
  clearInterval(ticking);
  t.ok(others >= 5, `other work ran ${others} times`);
  t.ok(yields <= 50, `${yields} slices of at least 10 ms`);
});

t.test('aborted work ends', async (t) => {
  const ending = new AbortController();
  const turn = createYielder(ending.signal);
  ending.abort();
  await t.rejects(
    async () => {
      for (;;) await turn();
    },
    { name: 'AbortError' },
  );
});
