import t from 'tap';
import { BoundedMap } from '../../src/async/bounded-map.ts';
import { LoadingCache, type Loaded } from '../../src/async/loading-cache.ts';
import { createFakeClock } from '../support/fake-clock.ts';

t.test('the least recently used entry is removed first', async (t) => {
  const evicted: [number, string][] = [];
  const map = new BoundedMap<string, number>(2, (value, key) => evicted.push([value, key]));
  map.set('a', 1).set('b', 2);
  t.equal(map.get('a'), 1);
  map.set('c', 3);
  t.strictSame(
    [...map],
    [
      ['a', 1],
      ['c', 3],
    ],
  );
  map.set('a', 4).set('d', 5);
  t.strictSame([...map.keys()], ['a', 'd']);
  t.strictSame(evicted, [
    [2, 'b'],
    [3, 'c'],
  ]);
});

t.test('peek and a missing key do not change the order', async (t) => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2);
  t.equal(map.peek('a'), 1);
  t.equal(map.get('x'), undefined);
  map.set('c', 3);
  t.strictSame([...map.keys()], ['b', 'c']);
});

t.test('delete and clear evict nothing', async (t) => {
  const map = new BoundedMap<string, number>(2, () => t.fail('evicted'));
  map.set('a', 1).set('b', 2);
  t.ok(map.delete('a'));
  map.set('c', 3);
  map.clear();
  t.equal(map.size, 0);
});

function setUp(maxBytes?: number) {
  const clock = createFakeClock();
  const cache = new LoadingCache<number>({
    clock,
    maxEntries: 10,
    ...(maxBytes !== undefined && { size: { bytesOf: (value: number) => value, maxBytes } }),
  });
  let loads = 0;
  const loaded = (value: number): Loaded<number> => ({ value, expiresAt: clock.monotonic() + 100 });
  return {
    clock,
    cache,
    loaded,
    /** The cached value, or the number of this load. */
    get: (key: string) => cache.get(key, () => Promise.resolve(loaded((loads += 1)))),
    /** Caches a value of this size. */
    put: (bytes: number) => cache.get(String(bytes), () => Promise.resolve(loaded(bytes))),
    /** Whether a value is cached; loads nothing. */
    has: async (key: string) => {
      const absent = new Error('absent');
      return await cache
        .get(key, () => Promise.reject(absent))
        .then(
          () => true,
          () => false,
        );
    },
  };
}

t.test('a value is cached until it expires', async (t) => {
  const { clock, get } = setUp();
  t.equal(await get('a'), 1);
  await clock.advance(99);
  t.equal(await get('a'), 1);
  await clock.advance(1);
  t.equal(await get('a'), 2);
});

t.test('a failed load is not cached, a deleted value is loaded again', async (t) => {
  const { cache, get } = setUp();
  const fail = () => Promise.reject(new Error('no'));
  await Promise.all([t.rejects(cache.get('a', fail)), t.rejects(cache.get('a', fail))]);
  t.equal(cache.size, 0);
  t.equal(await get('a'), 1);
  cache.delete('a');
  t.equal(await get('a'), 2);
});

t.test('a late load does not replace a newer value', async (t) => {
  const { cache, loaded, get, has } = setUp(10);
  for (const end of ['fails', 'succeeds']) {
    const { promise, resolve, reject } = Promise.withResolvers<Loaded<number>>();
    const late = cache.get('a', () => promise);
    cache.delete('a');
    const value = await get('a');
    if (end === 'fails') {
      reject(new Error('late'));
      await t.rejects(late, { message: 'late' });
    } else {
      resolve(loaded(10));
      t.equal(await late, 10);
    }
    t.equal(await get('a'), value);
    t.ok(await has('a'));
    cache.delete('a');
  }
});

t.test('all values together are bounded by bytes', async (t) => {
  const { put, has } = setUp(100);
  for (const bytes of [40, 60, 0]) await put(bytes);
  t.strictSame([await has('40'), await has('60'), await has('0')], [true, true, true]);
  await put(1);
  t.strictSame([await has('40'), await has('60'), await has('0')], [false, true, true]);
  t.equal(await put(101), 101, 'a value that is too large is returned');
  t.equal(await has('101'), false);
  t.strictSame([await has('60'), await has('0'), await has('1')], [true, true, true], 'the others stay');
});
