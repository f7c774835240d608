import t from 'tap';
import { BoundedMap } from '../../src/async/bounded-map.ts';

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
