import t from 'tap';
import { createSingleFlight, FlightTimeout, unlessAborted } from '../../src/async/single-flight.ts';
import { fakeTime, settled } from '../images/support.ts';

t.test('who asks for the same key shares one flight; other keys fly by themselves', async (t) => {
  const flights = createSingleFlight<string>(1000, fakeTime().startTimer);
  const started: string[] = [];
  const gate = Promise.withResolvers<void>();
  const run = (name: string) => async (): Promise<string> => {
    started.push(name);
    await gate.promise;
    return name;
  };
  const results = [
    flights.join('a', run('first')),
    flights.join('a', run('second')),
    flights.join('b', run('third')),
  ];
  t.equal(flights.size, 2);
  t.ok(flights.has('a'));
  gate.resolve();
  t.same(await Promise.all(results), ['first', 'first', 'third']);
  t.same(started, ['first', 'third']);
  t.equal(flights.size, 0);
  t.equal(await flights.join('a', run('fourth')), 'fourth', 'the next one flies again');
});

t.test('a failed flight fails all who wait, and no one later', async (t) => {
  const flights = createSingleFlight<string>(1000, fakeTime().startTimer);
  const fail = async (): Promise<string> => {
    await settled();
    throw new Error('lost');
  };
  const results = await Promise.allSettled([flights.join('a', fail), flights.join('a', fail)]);
  t.same(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  t.equal(flights.has('a'), false);
});

t.test('a flight that starts with a throw leaves nothing behind', async (t) => {
  const time = fakeTime();
  const flights = createSingleFlight<string>(1000, time.startTimer);
  await t.rejects(
    flights.join('a', () => {
      throw new Error('at once');
    }),
    { message: 'at once' },
  );
  t.equal(flights.size, 0);
  t.equal(time.timers, 0);
});

t.test('the limit aborts the signal, once', async (t) => {
  const time = fakeTime();
  const flights = createSingleFlight<unknown>(15_000, time.startTimer);
  const result = flights.join('a', (signal) => unlessAborted(new Promise(() => {}), signal));
  time.pass(14_999);
  await settled();
  t.equal(flights.size, 1);
  time.pass(1);
  await t.rejects(result, { name: 'FlightTimeout', code: 'timeout', message: 'not answered within 15 s' });
  t.equal(flights.size, 0);
  t.ok(new FlightTimeout(1).temporary);
});

t.test('a flight that ended has no timer', async (t) => {
  const time = fakeTime();
  const flights = createSingleFlight<string>(1000, time.startTimer);
  await flights.join('a', async () => 'done');
  t.equal(time.timers, 0);
});

t.test('close ends flights, and those that start later', async (t) => {
  const flights = createSingleFlight<unknown>(1000, fakeTime().startTimer);
  const never = (signal: AbortSignal): Promise<unknown> => unlessAborted(new Promise(() => {}), signal);
  const early = t.rejects(flights.join('a', never), { message: 'ending' });
  await flights.close(new Error('ending'));
  await early;
  await t.rejects(flights.join('b', never), { message: 'ending' });
  t.equal(flights.size, 0);
});

t.test('unlessAborted', async (t) => {
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
