import t from 'tap';
import { concurrently, createYielder } from '../../src/async/concurrently.ts';

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
