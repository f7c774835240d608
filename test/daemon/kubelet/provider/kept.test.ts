import t from 'tap';
import { createKept } from '../../../../daemon/kubelet/provider/kept.ts';
import { stoppedClock } from '../support.ts';

function counted(forMs = 100) {
  let calls = 0;
  return {
    fetch: () => Promise.resolve({ value: ++calls, forMs }),
    get calls() {
      return calls;
    },
  };
}

t.test('a value is kept for its time, counted from when it was asked for', async (t) => {
  const clock = stoppedClock();
  const kept = createKept<number>(clock, 10);
  const first = counted();
  const { promise, resolve } = Promise.withResolvers<{ value: number; forMs: number }>();
  const waiting = kept.get('a', () => promise);
  clock.at = 50;
  resolve({ value: 7, forMs: 100 });
  t.equal(await waiting, 7);
  clock.at = 99;
  t.equal(await kept.get('a', first.fetch), 7);
  clock.at = 100;
  t.equal(await kept.get('a', first.fetch), 1);
});

t.test('those who ask at the same time share one request', async (t) => {
  const kept = createKept<number>(stoppedClock(), 10);
  const one = counted();
  t.same(await Promise.all(['a', 'a', 'b'].map((key) => kept.get(key, one.fetch))), [1, 1, 2]);
});

t.test('a failure is not kept, and what was forgotten is asked for again', async (t) => {
  const kept = createKept<number>(stoppedClock(), 10);
  const failing = () => Promise.reject<{ value: number; forMs: number }>(new Error('no'));
  await Promise.all([t.rejects(kept.get('a', failing)), t.rejects(kept.get('a', failing))]);
  t.equal(kept.size, 0);
  const one = counted();
  t.equal(await kept.get('a', one.fetch), 1);
  kept.forget('a');
  t.equal(await kept.get('a', one.fetch), 2);
});

t.test('a failure that comes late takes no newer value away', async (t) => {
  const kept = createKept<number>(stoppedClock(), 10);
  const { promise, reject } = Promise.withResolvers<{ value: number; forMs: number }>();
  const waiting = kept.get('a', () => promise);
  kept.forget('a');
  const one = counted();
  t.equal(await kept.get('a', one.fetch), 1);
  reject(new Error('late'));
  await t.rejects(waiting, { message: 'late' });
  t.equal(await kept.get('a', one.fetch), 1);
});

t.test('the oldest leave first', async (t) => {
  const kept = createKept<number>(stoppedClock(), 2);
  const one = counted();
  for (const key of ['a', 'b', 'c']) await kept.get(key, one.fetch);
  t.equal(kept.size, 2);
  t.equal(await kept.get('c', one.fetch), 3);
  t.equal(await kept.get('b', one.fetch), 2);
  t.equal(await kept.get('a', one.fetch), 4);
});
