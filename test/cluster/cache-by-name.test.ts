import { test } from 'tap';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/async/clock.ts';
import { createCacheByName, whileWaiting } from '../../src/cluster/cache-by-name.ts';
import { noTimers } from '../support/fake-clock.ts';

const signal = new AbortController().signal;

function manualClock(): Clock & { ms: number } {
  const clock = { ms: 0, ...noTimers, now: () => clock.ms, monotonic: () => clock.ms };
  return clock;
}

test('one request serves concurrent askers, and is kept for a while', async (t) => {
  const clock = manualClock();
  const loads: string[] = [];
  const kept = createCacheByName({
    load: (namespace, name) => {
      loads.push(`${namespace}/${name}`);
      return Promise.resolve(`${namespace}/${name} ${loads.length}`);
    },
    keepMs: 60_000,
    clock,
  });
  t.strictSame(await Promise.all([kept.get('a', 'x', signal), kept.get('a', 'x', signal)]), [
    'a/x 1',
    'a/x 1',
  ]);
  clock.ms = 59_999;
  t.equal(await kept.get('a', 'x', signal), 'a/x 1');
  clock.ms = 60_000;
  t.equal(await kept.get('a', 'x', signal), 'a/x 2');
  t.equal(await kept.get('b', 'x', signal), 'b/x 3', 'namespaces are apart');
});

test('what does not exist is remembered, a failure is not', async (t) => {
  let loads = 0;
  const missing = createCacheByName({
    load: () => Promise.resolve(void (loads += 1)),
    keepMs: 1000,
    clock: manualClock(),
  });
  await missing.get('a', 'x', signal);
  t.equal(await missing.get('a', 'x', signal), undefined);
  t.equal(loads, 1);

  let failures = 0;
  const failing = createCacheByName({
    load: () => {
      failures += 1;
      return Promise.reject(new Error('away'));
    },
    keepMs: 1000,
    clock: manualClock(),
  });
  await t.rejects(failing.get('a', 'x', signal), { message: 'away' });
  await t.rejects(failing.get('a', 'x', signal), { message: 'away' });
  t.equal(failures, 2);
});

test('an asker that stops waiting leaves the request to the next', async (t) => {
  let answer: ((value: string) => void) | undefined;
  let loads = 0;
  const kept = createCacheByName({
    load: () => {
      loads += 1;
      return new Promise<string>((resolve) => (answer = resolve));
    },
    keepMs: 1000,
    clock: manualClock(),
  });
  const gone = new AbortController();
  const first = kept.get('a', 'x', gone.signal);
  gone.abort(new Error('no time'));
  await t.rejects(first, { message: 'no time' });
  const second = kept.get('a', 'x', signal);
  answer?.('here');
  t.equal(await second, 'here');
  t.equal(loads, 1);
});

test('it is bounded: the oldest goes first', async (t) => {
  let loads = 0;
  const kept = createCacheByName({
    load: () => Promise.resolve((loads += 1)),
    keepMs: 1000,
    clock: manualClock(),
  });
  for (let index = 0; index <= 1000; index += 1) await kept.get('a', `x${index}`, signal);
  await kept.get('a', 'x1000', signal);
  t.equal(loads, 1001, 'the newest is there');
  await kept.get('a', 'x0', signal);
  t.equal(loads, 1002, 'the oldest is not');
});

test('waiting ends with the signal, whichever is first', async (t) => {
  t.equal(await whileWaiting(Promise.resolve(1), signal), 1);
  await t.rejects(whileWaiting(Promise.reject(new Error('failed')), signal), { message: 'failed' });
  await t.rejects(whileWaiting(new Promise(() => undefined), AbortSignal.abort(new Error('late'))), {
    message: 'late',
  });
  const late = Promise.reject(new Error('after the end'));
  await t.rejects(whileWaiting(late, AbortSignal.abort(new Error('late'))), { message: 'late' });
  await turn();
});

test('what is kept is bounded by bytes, the oldest leave first', async (t) => {
  const loads: string[] = [];
  const kept = createCacheByName({
    load: (_, name) => {
      loads.push(name);
      return Promise.resolve(name === 'none' ? undefined : Number(name));
    },
    sizeOf: (size) => size,
    maxBytes: 100,
    keepMs: 1000,
    clock: manualClock(),
  });
  for (const name of ['40', '60', 'none', '60', '40', '1']) await kept.get('a', name, signal);
  t.strictSame(loads, ['40', '60', 'none', '1'], 'a hundred are kept');
  await kept.get('a', '40', signal);
  await kept.get('a', '1', signal);
  t.strictSame(loads.slice(4), ['40'], 'one more had made the oldest leave');
  t.equal(await kept.get('a', '101', signal), 101, 'too large to be kept, and given all the same');
  await kept.get('a', '101', signal);
  t.strictSame(loads.slice(5), ['101', '101']);
});
