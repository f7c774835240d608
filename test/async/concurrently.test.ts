import t from 'tap';
import { concurrently } from '../../src/async/concurrently.ts';

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
