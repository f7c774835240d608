import t from 'tap';
import { createYielder } from '../../src/async/yield-to-event-loop.ts';

t.test('long work yields to the event loop regularly', async (t) => {
  const ending = new AbortController();
  const turn = createYielder(ending.signal);
  let others = 0;
  const ticking = setInterval(() => void others++, 1);
  const end = performance.now() + 500;
  while (performance.now() < end) await turn();
  clearInterval(ticking);
  t.ok(others >= 5, `other work ran ${others} times`);
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
