import t, { type Test } from 'tap';
import { KubeError } from '../../src/kube/api/errors.ts';
import { WorkQueue, type WorkQueueOptions, type WorkResult } from '../../src/kube/queue.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { captureLog, silentLog } from '../support/captured.ts';

function start(t: Test, options: Partial<WorkQueueOptions> = {}, random = (): number => 1) {
  const time = createFakeClock(random);
  const began: string[] = [];
  const { log, lines } = captureLog('debug');
  const running = new Map<string, PromiseWithResolvers<WorkResult>>();
  const queue = new WorkQueue({
    work: (key) => {
      t.notOk(running.has(key), 'one worker per key');
      began.push(key);
      const ending = Promise.withResolvers<WorkResult>();
      running.set(key, ending);
      return ending.promise;
    },
    workers: 2,
    log,
    clock: time,
    backOff: { firstMs: 100, mostMs: 1000 },
    ...options,
  });
  queue.start();
  t.teardown(() => {
    for (const each of running.values()) each.resolve(undefined);
    return queue.stop();
  });
  const origin = time.monotonic();
  return {
    queue,
    time,
    began,
    lines,
    now: () => time.monotonic() - origin,
    end: async (key: string, result?: Error | WorkResult): Promise<void> => {
      const ending = running.get(key);
      running.delete(key);
      if (result instanceof Error) ending?.reject(result);
      else ending?.resolve(result);
      await time.advance(0);
    },
  };
}

void t.test('keys are processed once, in order, by a limited number of workers', async (t) => {
  const { queue, began, end } = start(t);
  for (const key of ['a', 'b', 'c', 'd', 'c', 'c']) queue.add(key);
  t.strictSame(began, ['a', 'b']);
  await end('b');
  await end('a');
  t.strictSame(began, ['a', 'b', 'c', 'd']);
  let isIdle = false;
  void queue.idle().then(() => (isIdle = true));
  await end('c');
  t.notOk(isIdle);
  await end('d');
  t.ok(isIdle);
});

void t.test('a key added during its work is processed once more', async (t) => {
  const { queue, began, end } = start(t);
  queue.add('a');
  queue.add('a');
  queue.add('a');
  t.strictSame(began, ['a']);
  await end('a');
  t.strictSame(began, ['a', 'a']);
  await end('a');
  t.strictSame(began, ['a', 'a']);
});

void t.test('of several delays the shortest applies', async (t) => {
  const { queue, time, began, end } = start(t);
  queue.add('a', 500);
  queue.add('a', 200);
  queue.add('a', 900);
  t.equal(time.pending, 1);
  await time.advance(199);
  t.strictSame(began, []);
  await time.advance(1);
  t.strictSame(began, ['a']);
  queue.add('a', 300);
  await end('a');
  t.strictSame(began, ['a'], 'the delay added during the work');
  queue.add('a');
  t.strictSame(began, ['a', 'a']);
  t.equal(time.pending, 0);
});

void t.test('failures back off up to a limit, and a success resets the back-off', async (t) => {
  const { queue, time, began, end, now } = start(t);
  const failed: number[] = [];
  queue.add('a');
  for (let i = 0; i < 6; i++) {
    const before = began.length;
    await end('a', new Error('no'));
    const from = now();
    while (began.length === before) await time.advance(10);
    failed.push(now() - from);
  }
  t.strictSame(failed, [100, 200, 400, 800, 1000, 1000]);
  await end('a');
  queue.add('a');
  await end('a', new Error('no'));
  await time.advance(100);
  t.equal(began.length, 9);
});

void t.test('add ends a back-off, also during failing work', async (t) => {
  const { queue, time, began, end } = start(t);
  queue.add('a');
  await end('a', new Error('no'));
  queue.add('a', 10);
  await time.advance(10);
  t.equal(began.length, 2, 'an earlier time replaces the back-off');
  queue.add('a');
  await end('a', new Error('no'));
  t.equal(began.length, 3);
  await end('a', new Error('no'));
  await time.advance(399);
  t.equal(began.length, 3, 'the failures still count');
  queue.add('a');
  t.equal(began.length, 4);
  await end('a');
  t.equal(time.pending, 0);
});

void t.test('with waitsForBackOff, add does not end a back-off', async (t) => {
  const { queue, time, began, end } = start(t, { waitsForBackOff: true });
  queue.add('a');
  queue.add('a');
  await end('a', new Error('no'));
  queue.add('a');
  queue.add('a', 10);
  await time.advance(99);
  t.equal(began.length, 1);
  await time.advance(1);
  t.equal(began.length, 2);
  t.equal(time.pending, 0);
});

void t.test('work is repeated after requeueAfterMs, or earlier by add', async (t) => {
  const { queue, time, began, end } = start(t);
  queue.add('a');
  await end('a', { requeueAfterMs: 500 });
  await time.advance(499);
  t.equal(began.length, 1);
  await time.advance(1);
  t.equal(began.length, 2);
  queue.add('a');
  await end('a', { requeueAfterMs: 500 });
  t.equal(began.length, 3);
  await end('a', { requeueAfterMs: Number.POSITIVE_INFINITY });
  await time.advance(3_600_000);
  t.equal(began.length, 3);
  queue.add('a');
  await end('a', { requeueAfterMs: 0 });
  await time.advance(1);
  t.equal(began.length, 5);
});

void t.test('keys added before start are processed after it', async (t) => {
  const began: string[] = [];
  const queue = new WorkQueue({
    work: (key) => Promise.resolve(void began.push(key)),
    workers: 1,
    clock: createFakeClock(),
    log: silentLog,
  });
  queue.add('a');
  t.strictSame(began, []);
  queue.start();
  t.strictSame(began, ['a']);
});

void t.test('Retry-After is honored up to a limit; jitter shortens the back-off', async (t) => {
  const { queue, time, began, end } = start(t, {}, () => 0);
  const busy = (seconds: number): KubeError =>
    new KubeError('too-many-requests', 'PATCH /x', 'busy', { retryAfterMs: seconds * 1000 });
  queue.add('a');
  await end('a', new Error('x'));
  await time.advance(50);
  t.equal(began.length, 2, 'half of the pause');
  await end('a', busy(0.7));
  await time.advance(699);
  t.equal(began.length, 2);
  await time.advance(1);
  t.equal(began.length, 3);
  await end('a', busy(3600));
  await time.advance(1000);
  t.equal(began.length, 4, 'at most the longest back-off');
});

void t.test('conflicts are logged as warnings only if they repeat', async (t) => {
  const { queue, time, lines, end } = start(t);
  const levels = (): (string | undefined)[] => lines.map((line) => /"level":"(\w+)"/.exec(line)?.[1]);
  queue.add('a');
  for (let i = 0; i < 8; i++) {
    await end('a', new KubeError('conflict', 'PATCH /x', 'changed'));
    await time.advance(1000);
  }
  t.strictSame(levels(), ['debug', 'debug', 'debug', 'warn', 'warn']);
  queue.add('b');
  await end('b', new Error('a defect'));
  t.match(lines.at(-1), /"warn".*"key":"b".*a defect/);
});

void t.test('work that throws synchronously is a failure', async (t) => {
  const { queue, time } = start(t, {
    work: () => {
      throw new Error('at once');
    },
  });
  queue.add('a');
  await time.advance(0);
  t.equal(time.pending, 1, 'it is tried again later');
  await queue.idle();
});

void t.test('stop aborts running work, waits for it, and starts no more', async (t) => {
  const aborted: string[] = [];
  const { queue, time } = start(t, {
    work: (key, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          aborted.push(key);
          reject(new Error('stopped'));
        });
      }),
  });
  for (const key of ['a', 'b', 'c']) queue.add(key);
  queue.add('d', 100);
  await queue.stop();
  t.strictSame(aborted, ['a', 'b']);
  t.equal(time.pending, 0);
  queue.add('e');
  queue.add('f', 1);
  t.equal(time.pending, 0);
  await time.advance(1000);
  t.strictSame(aborted, ['a', 'b']);
});

void t.test('attack: hanging work of eight namespaces leaves workers for others', async (t) => {
  const { queue, began, end } = start(t, { workers: 64 });
  for (let index = 0; index < 800; index++) queue.add(`attacker-${index % 8}/pod-${index}`);
  for (const name of ['a', 'b', 'c']) queue.add(`shop/${name}`);
  t.ok(began.length < 64, `${began.length} of 64 workers`);
  for (const name of ['a', 'b', 'c']) {
    t.ok(began.includes(`shop/${name}`));
    await end(`shop/${name}`);
  }
});

void t.test('earlier keys of one namespace do not delay those of another', async (t) => {
  const { queue, began, end } = start(t, { workers: 2 });
  for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'b/2']) queue.add(key);
  t.strictSame(began, ['a/1', 'b/1']);
  await end('b/1');
  t.strictSame(began, ['a/1', 'b/1', 'b/2']);
  await end('a/1');
  await end('b/2');
  t.strictSame(began.slice(3), ['a/2'], 'one of two workers is left for other namespaces');
});
