import t from 'tap';
import { FairSemaphore, FairSemaphores, Overloaded, type Leave } from '../../src/async/fair-semaphore.ts';

const patience = new AbortController().signal;

/** Lets everything that is ready happen. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A semaphore that records in which order its callers go. */
function recorded(semaphore: FairSemaphore) {
  const order: string[] = [];
  const leaves: Leave[] = [];
  return {
    order,
    enter: (key: string, name = key, signal = patience) =>
      semaphore.enter(key, signal).then((leave) => {
        order.push(name);
        leaves.push(leave);
      }),
    /** The one that has been inside longest leaves. */
    leave: async () => {
      leaves.shift()?.();
      await settle();
    },
  };
}

/** How many places each of these keys gets that takes as many as it can, one key after the other. */
function takenBy(places: number, keys: number): number[] {
  const semaphore = new FairSemaphore({ places });
  return Array.from({ length: keys }, (_, key) => {
    let count = 0;
    while (semaphore.tryEnter(`hog-${key}`)) count += 1;
    return count;
  });
}

t.test('one busy key gets a third, and many leave places for later ones', (t) => {
  t.same(takenBy(128, 8), [43, 21, 13, 8, 6, 4, 3, 3], '27 are free');
  t.same(takenBy(28, 9), [9, 5, 3, 2, 1, 1, 1, 1, 1]);
  t.same(takenBy(2, 3), [1, 1, 0], 'each key gets one place, as long as there are any');
  t.ok(takenBy(128, 30).every((count) => count > 0));
  t.end();
});

t.test('first in, first out for a key, round robin over the keys', async (t) => {
  const { order, enter, leave } = recorded(new FairSemaphore({ places: 2 }));
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) void enter(name.slice(0, 1), name);
  await settle();
  t.same(order, ['a1', 'b1'], 'one key leaves a place free for the next');
  for (let left = 5; left > 0; left -= 1) await leave();
  t.same(order, ['a1', 'b1', 'a2', 'b2', 'c1', 'a3', 'a4'].slice(0, order.length));
  await leave();
  await leave();
  t.same(order, ['a1', 'b1', 'a2', 'b2', 'c1', 'a3', 'a4']);
});

t.test('a place is given back once', async (t) => {
  const semaphore = new FairSemaphore({ places: 1 });
  const leave = await semaphore.enter('a', patience);
  leave();
  leave();
  t.ok(semaphore.isIdle);
  const again = await semaphore.enter('a', patience);
  leave();
  t.equal(semaphore.tryEnter('b'), undefined);
  again();
  t.ok(semaphore.tryEnter('b'));
});

t.test('a caller that gives up leaves the queue', async (t) => {
  const semaphore = new FairSemaphore({ places: 1 });
  const leave = await semaphore.enter('a', patience);
  const controller = new AbortController();
  const impatient = semaphore.enter('a', controller.signal);
  const patient = semaphore.enter('a', patience);
  controller.abort(new Error('enough'));
  await t.rejects(impatient, { message: 'enough' });
  await t.rejects(semaphore.enter('b', controller.signal), { message: 'enough' }, 'it does not even enter');
  leave();
  (await patient)();
  t.ok(semaphore.isIdle);
});

t.test('callers beyond the bounds of the queue are refused', async (t) => {
  const semaphore = new FairSemaphore({ places: 1, maxWaiting: 6 });
  const leave = await semaphore.enter('a', patience);
  const waiting = ['a', 'a', 'b', 'c', 'd', 'e'].map((key) => semaphore.enter(key, patience));
  await t.rejects(semaphore.enter('a', patience), Overloaded, 'of one key: a third');
  await t.rejects(semaphore.enter('f', patience), Overloaded, 'of all keys');
  leave();
  (await waiting[0])?.();
  await t.rejects(semaphore.enter('a', AbortSignal.abort(new Error('gone'))), { message: 'gone' });
  for (const index of [2, 3, 4, 5, 1]) (await waiting[index])?.();
});

t.test('attack: eight keys that wait as often as they may leave room in the queue for others', async (t) => {
  const semaphore = new FairSemaphore({ places: 8, maxWaiting: 100 });
  const stop = new AbortController();
  const refused = async (key: string): Promise<boolean> => {
    const entered = semaphore.enter(key, stop.signal);
    return Promise.race([
      entered.then(
        () => false,
        () => true,
      ),
      settle().then(() => false),
    ]);
  };
  for (let key = 0; key < 8; key += 1) while (!(await refused(`hog-${key}`)));
  const others: boolean[] = [];
  for (const key of ['shop', 'shop', 'other']) others.push(await refused(key));
  t.same(others, [false, false, false]);
  stop.abort(new Error('enough'));
});

t.test('resources do not wait for each other, and exist only while they are used', async (t) => {
  const semaphores = new FairSemaphores({ places: 1 });
  const one = await semaphores.enter('one', 'a', patience);
  const two = await semaphores.enter('two', 'a', patience);
  const next = semaphores.enter('one', 'b', patience);
  one();
  (await next)();
  two();
  t.type(await semaphores.enter('one', 'c', patience), 'function');
});
