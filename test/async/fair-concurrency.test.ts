import { setImmediate as settled } from 'node:timers/promises';
import t from 'tap';
import { fairlyConcurrent, type Owned } from '../../src/async/fair-concurrency.ts';

const mayStart = () => true;

const of = (owner: string, count: number): Owned<string>[] =>
  Array.from({ length: count }, (_, index) => ({ item: `${owner}${index}`, owners: [owner] }));

t.test('hanging work of one owner leaves places for the others', async (t) => {
  const done: string[] = [];
  const slow = Promise.withResolvers<void>();
  const started: string[] = [];
  const all = fairlyConcurrent(
    [...of('slow', 50), ...of('a', 10), ...of('b', 10)],
    { places: 8, mayStart },
    async (item) => {
      started.push(item);
      if (item.startsWith('slow')) await slow.promise;
      done.push(item);
    },
  );
  await settled();
  await settled();
  t.equal(done.length, 20);
  t.ok(started.filter((item) => item.startsWith('slow')).length < 8);
  slow.resolve();
  t.strictSame(await all, []);
  t.equal(done.length, 70);
});

t.test('an item of several owners is processed once', async (t) => {
  const seen: string[] = [];
  await fairlyConcurrent(
    [{ item: 'x', owners: ['a', 'b'] }, ...of('a', 2)],
    { places: 2, mayStart },
    async (item) => {
      await settled();
      seen.push(item);
    },
  );
  t.strictSame(seen.sort(), ['a0', 'a1', 'x']);
});

t.test('after a stop the remaining items are returned', async (t) => {
  let started = 0;
  const mayStart = () => started < 3;
  const left = await fairlyConcurrent([...of('a', 3), ...of('b', 2)], { places: 1, mayStart }, async () => {
    started += 1;
    await settled();
  });
  t.strictSame(left, ['a2', 'b1']);
  t.strictSame(await fairlyConcurrent([], { places: 1, mayStart }, () => Promise.resolve()), []);
});

t.test('the first error ends the run', async (t) => {
  let started = 0;
  const work = async (): Promise<void> => {
    started += 1;
    await settled();
    throw new Error(`error ${started}`);
  };
  await t.rejects(fairlyConcurrent(of('a', 5), { places: 1, mayStart }, work), { message: 'error 1' });
  t.equal(started, 1);
  const mixed = async (item: string): Promise<void> => {
    await settled();
    if (item === 'b0') throw new Error('beside a success');
  };
  await t.rejects(fairlyConcurrent([...of('a', 1), ...of('b', 1)], { places: 6, mayStart }, mixed), {
    message: /beside/,
  });
});
