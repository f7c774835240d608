import t from 'tap';
import { createFlights } from '../../../../daemon/kubelet/provider/flights.ts';

t.test('all who ask meanwhile share one run, and the next begins anew', async (t) => {
  const flights = createFlights<number>();
  let runs = 0;
  const start = async () => {
    runs += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return runs;
  };
  t.same(await Promise.all([1, 2, 3].map(() => flights.join('a', undefined, start))), [1, 1, 1]);
  t.equal(await flights.join('a', undefined, start), 2);
  await Promise.all([flights.join('a', undefined, start), flights.join('b', undefined, start)]);
  t.equal(runs, 4);
});

t.test('a failure is everybody’s, and is not kept', async (t) => {
  const flights = createFlights<number>();
  const fail = () => Promise.reject(new Error('no'));
  const both = await Promise.allSettled([
    flights.join('a', undefined, fail),
    flights.join('a', undefined, fail),
  ]);
  t.match(both, [{ reason: { message: 'no' } }, { reason: { message: 'no' } }]);
  t.equal(await flights.join('a', undefined, () => Promise.resolve(1)), 1);
});

t.test('one who gives up leaves the others; when nobody is left, the run is told', async (t) => {
  const flights = createFlights<string>();
  const { promise, resolve } = Promise.withResolvers<string>();
  let told: AbortSignal | undefined;
  const first = new AbortController();
  const second = new AbortController();
  const one = flights.join('a', first.signal, (abandoned) => {
    told = abandoned;
    return promise;
  });
  const two = flights.join('a', second.signal, () => Promise.reject(new Error('a second run')));
  first.abort(new Error('first'));
  await t.rejects(one, { message: 'first' });
  t.equal(told?.aborted, false);
  second.abort(new Error('second'));
  await t.rejects(two, { message: 'second' });
  t.equal(told?.aborted, true);
  const three = flights.join('a', undefined, () => Promise.reject(new Error('a second run')));
  resolve('done');
  t.equal(await three, 'done', 'while it goes on it can be joined');
  await t.rejects(
    flights.join('b', AbortSignal.abort(new Error('before')), () => promise),
    { message: 'before' },
  );
});
