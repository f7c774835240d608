import { test } from 'tap';
import { createObjectCache, type ObjectCacheOptions } from '../../src/cluster/object-cache.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { pullSecretReads } from '../../src/cluster/metrics.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const signal = new AbortController().signal;

function setUp(load: ObjectCacheOptions<string>['load'], more: Partial<ObjectCacheOptions<string>> = {}) {
  const clock = createFakeClock();
  const metrics = createMetrics();
  const count = (outcome: string) => metrics.counter(pullSecretReads, { outcome });
  const counts = { found: count('found'), missing: count('missing'), failed: count('failed') };
  return { clock, get: createObjectCache({ load, keepMs: 60_000, clock, counts, ...more }) };
}

test('one request serves concurrent callers, absent objects are cached, failures are not', async (t) => {
  const loads: string[] = [];
  const { clock, get } = setUp(async (namespace, name) => {
    loads.push(`${namespace}/${name}`);
    if (name === 'failing') throw new Error('away');
    return name === 'absent' ? undefined : `${namespace}/${name} ${loads.length}`;
  });
  const both = await Promise.all([get('a', 'x', signal), get('a', 'x', signal)]);
  t.strictSame(both, ['a/x 1', 'a/x 1']);
  await clock.advance(59_999);
  t.equal(await get('a', 'x', signal), 'a/x 1');
  await clock.advance(1);
  t.equal(await get('a', 'x', signal), 'a/x 2');
  t.equal(await get('b', 'x', signal), 'b/x 3', 'namespaces are apart');
  for (const _ of [1, 2]) t.equal(await get('a', 'absent', signal), undefined);
  for (const _ of [1, 2]) await t.rejects(get('a', 'failing', signal), { message: 'away' });
  t.strictSame(loads.slice(3), ['a/absent', 'a/failing', 'a/failing']);
});

test('a caller that stops waiting leaves the request to the next', async (t) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  let loads = 0;
  const { get } = setUp(() => {
    loads += 1;
    return promise;
  });
  const gone = new AbortController();
  const first = get('a', 'x', gone.signal);
  gone.abort(new Error('no time'));
  await t.rejects(first, { message: 'no time' });
  const second = get('a', 'x', signal);
  resolve('here');
  t.equal(await second, 'here');
  t.equal(loads, 1);
});

test('it is bounded by entries and by bytes', async (t) => {
  const loads: string[] = [];
  const load = (_: string, name: string): Promise<string> => {
    loads.push(name);
    return Promise.resolve(name);
  };
  const byEntries = setUp(load).get;
  for (let index = 0; index <= 1000; index += 1) await byEntries('a', `x${index}`, signal);
  await byEntries('a', 'x1000', signal);
  t.equal(loads.length, 1001, 'the newest is there');
  await byEntries('a', 'x0', signal);
  t.equal(loads.length, 1002, 'the oldest is not');

  const byBytes = setUp(load, { sizeOf: () => 9 * 1024 * 1024 }).get;
  for (const name of ['one', 'two', 'one']) await byBytes('a', name, signal);
  t.strictSame(loads.slice(1002), ['one', 'two', 'one'], 'two are larger than 16 MiB');
});
