/** Callers that stop waiting. The cache's tests hold the rest: what is shared, the time limit, the end. */
import t from 'tap';
import { SingleFlight } from '../../src/async/single-flight.ts';

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
