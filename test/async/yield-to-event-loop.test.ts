import t from 'tap';
import { createYielder } from '../../src/async/yield-to-event-loop.ts';

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
