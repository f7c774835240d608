import t from 'tap';
import { inTurn } from '../../src/async/fair-queue.ts';
import { setImmediate as settled } from 'node:timers/promises';
import { FairSemaphore, FairSemaphores, Overloaded, type Leave } from '../../src/async/fair-semaphore.ts';
import { neverAborted } from '../support/never-aborted.ts';

t.test('keys take turns, and what has several keys comes once', async (t) => {
  const items = ['a1', 'a2', 'a3', 'ab', 'b1', 'c1'];
  const keysOf = (item: string) => item.replace(/\d/, '').split('');
  t.strictSame(inTurn(items, keysOf), ['a1', 'ab', 'c1', 'a2', 'b1', 'a3']);
  t.strictSame(inTurn([], keysOf), []);
});

/** A semaphore that records the order of its callers. */
function recorded(semaphore: FairSemaphore) {
  const order: string[] = [];
  const leaves: Leave[] = [];
  return {
    order,
    enter: (key: string, name = key, signal = neverAborted) =>
      semaphore.enter(key, signal).then((leave) => {
        order.push(name);
        leaves.push(leave);
      }),
    /** Releases the oldest holder. */
    leave: async () => {
      leaves.shift()?.();
      await settled();
    },
  };
}

/** The places of each key if each in turn takes as many as it can. */
function takenBy(places: number, keys: number): number[] {
  const semaphore = new FairSemaphore({ places });
  return Array.from({ length: keys }, (_, key) => {
    let count = 0;
    while (semaphore.tryEnter(`hog-${key}`)) count += 1;
    return count;
  });
}

t.test('one key gets at most a third, and many keys leave places for later ones', (t) => {
  t.strictSame(takenBy(128, 8), [43, 21, 13, 8, 6, 4, 3, 3], '27 are free');
  t.strictSame(takenBy(28, 9), [9, 5, 3, 2, 1, 1, 1, 1, 1]);
  t.strictSame(takenBy(2, 3), [1, 1, 0], 'each key gets one place, as long as there are any');
  t.ok(takenBy(128, 30).every((count) => count > 0));
  t.end();
});

t.test('callers are served in order within a key, and round robin over keys', async (t) => {
  const { order, enter, leave } = recorded(new FairSemaphore({ places: 2 }));
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) void enter(name.slice(0, 1), name);
  await settled();
  t.strictSame(order, ['a1', 'b1'], 'one key leaves a place free for the next');
  for (let left = 5; left > 0; left -= 1) await leave();
  t.strictSame(order, ['a1', 'b1', 'a2', 'b2', 'c1', 'a3', 'a4'].slice(0, order.length));
  await leave();
  await leave();
  t.strictSame(order, ['a1', 'b1', 'a2', 'b2', 'c1', 'a3', 'a4']);
});

t.test('releasing twice has no effect', async (t) => {
  const semaphore = new FairSemaphore({ places: 1 });
  const leave = await semaphore.enter('a', neverAborted);
  leave();
  leave();
  const again = await semaphore.enter('a', neverAborted);
  leave();
  t.equal(semaphore.tryEnter('b'), undefined);
  again();
  t.ok(semaphore.tryEnter('b'));
});

t.test('an aborted caller leaves the queue', async (t) => {
  const semaphore = new FairSemaphore({ places: 1 });
  const leave = await semaphore.enter('a', neverAborted);
  const controller = new AbortController();
  const impatient = semaphore.enter('a', controller.signal);
  const patient = semaphore.enter('a', neverAborted);
  controller.abort(new Error('enough'));
  await t.rejects(impatient, { message: 'enough' });
  await t.rejects(
    semaphore.enter('b', controller.signal),
    { message: 'enough' },
    'an aborted caller gets no place',
  );
  leave();
  t.notOk(semaphore.isIdle, 'another caller waits');
  (await patient)();
  t.ok(semaphore.isIdle);
});

t.test('callers beyond the limit of the queue are refused', async (t) => {
  const semaphore = new FairSemaphore({ places: 1, maxWaiting: 6 });
  const leave = await semaphore.enter('a', neverAborted);
  const waiting = ['a', 'a', 'b', 'c', 'd', 'e'].map((key) => semaphore.enter(key, neverAborted));
  await t.rejects(semaphore.enter('a', neverAborted), Overloaded, 'of one key: a third');
  await t.rejects(semaphore.enter('f', neverAborted), Overloaded, 'of all keys');
  leave();
  (await waiting[0])?.();
  await t.rejects(semaphore.enter('a', AbortSignal.abort(new Error('gone'))), { message: 'gone' });
  for (const index of [2, 3, 4, 5, 1]) (await waiting[index])?.();
});

t.test('attack: eight keys cannot fill the queue', async (t) => {
  const semaphore = new FairSemaphore({ places: 8, maxWaiting: 100 });
  const stop = new AbortController();
  const refused = async (key: string): Promise<boolean> => {
    const entered = semaphore.enter(key, stop.signal);
    return Promise.race([
      entered.then(
        () => false,
        () => true,
      ),
      settled().then(() => false),
    ]);
  };
  for (let key = 0; key < 8; key += 1) while (!(await refused(`hog-${key}`)));
  const others: boolean[] = [];
  for (const key of ['shop', 'shop', 'other']) others.push(await refused(key));
  t.strictSame(others, [false, false, false]);
  stop.abort(new Error('enough'));
});

t.test('resources are independent, and exist only while in use', async (t) => {
  const semaphores = new FairSemaphores({ places: 1 });
  const leave = await semaphores.get('one').enter('a', neverAborted);
  const one = semaphores.get('one');
  (await semaphores.get('two').enter('a', neverAborted))();
  t.equal(semaphores.get('one'), one);
  leave();
  t.equal(semaphores.get('one'), one, 'while no other resource is new');
  semaphores.get('three');
  t.not(semaphores.get('one'), one);
});
