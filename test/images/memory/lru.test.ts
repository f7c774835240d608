import { assert, array, integer, property, record } from 'fast-check';
import t from 'tap';
import { Lru, type Linked } from '../../../src/images/memory/lru.ts';

interface Item extends Linked<Item> {
  readonly value: number;
}

function item(key: string, bytes = 1, value = 0): Item {
  return { key, bytes, value, listed: false, newer: undefined, older: undefined };
}

t.test('entries are ordered by their last use', async (t) => {
  const removed: string[] = [];
  const lru = new Lru<Item>(({ key }) => removed.push(key));
  const keys = (): string[] => [...lru.newestFirst()].map(({ key }) => key).reverse();
  const [a, b, c] = [item('a', 3), item('b', 5), item('c', 7)];
  for (const one of [a, b, c]) lru.put(one);
  t.same(keys(), ['a', 'b', 'c']);
  t.equal(lru.oldest, a);
  lru.touch(a);
  t.same(keys(), ['b', 'c', 'a']);
  lru.touch(c);
  t.same(keys(), ['b', 'a', 'c']);
  t.equal(lru.bytes, 15);
  lru.remove(a);
  t.same(keys(), ['b', 'c']);
  t.same([lru.size, lru.bytes, a.listed, b.listed], [2, 12, false, true]);
  lru.remove(a);
  lru.touch(a);
  t.same(keys(), ['b', 'c'], 'removed entries stay removed');
  t.same(removed, ['a']);
  lru.put(item('b', 1));
  t.same(keys(), ['c', 'b'], 'a new entry replaces the old one');
  t.same([lru.bytes, b.listed, removed], [8, false, ['a', 'b']]);
  t.equal(lru.get('nothing'), undefined);
});

t.test('property: equals a Map with each used entry moved to its end', async (t) => {
  const steps = array(record({ kind: integer({ min: 0, max: 3 }), key: integer({ min: 0, max: 6 }) }), {
    maxLength: 60,
  });
  assert(
    property(steps, (all) => {
      const model = new Map<string, number>();
      const lru = new Lru<Item>();
      all.forEach(({ kind, key: number }, index) => {
        const key = String(number);
        const present = lru.get(key);
        if (kind < 2) {
          lru.put(item(key, number + 1, index));
          model.delete(key);
          model.set(key, index);
        } else if (present && kind === 2) {
          lru.touch(present);
          model.delete(key);
          model.set(key, present.value);
        } else if (present) {
          lru.remove(present);
          model.delete(key);
        }
      });
      t.same(
        [...lru.newestFirst()].map(({ key, value }) => [key, value]),
        [...model].reverse(),
      );
      t.equal(lru.oldest?.key, model.keys().next().value);
      t.equal(lru.size, model.size);
      t.equal(
        lru.bytes,
        [...model.keys()].reduce((sum, key) => sum + Number(key) + 1, 0),
      );
    }),
    { numRuns: 200 },
  );
});
