import t from 'tap';
import { HostSemaphore } from '../../src/async/semaphore.ts';

const patience = new AbortController().signal;

/** Lets everything that is ready happen. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

t.test('a limited number at a time, the others in order', async (t) => {
  const semaphore = new HostSemaphore(2);
  const order: number[] = [];
  const leaves: (() => void)[] = [];
  for (let n = 0; n < 5; n += 1) {
    void semaphore.enter('host', patience).then((leave) => {
      order.push(n);
      leaves.push(leave);
    });
  }
  await settle();
  t.same(order, [0, 1]);
  leaves[0]?.();
  leaves[0]?.();
  await settle();
  t.same(order, [0, 1, 2], 'a place is given back once');
  leaves[1]?.();
  leaves[2]?.();
  await settle();
  t.same(order, [0, 1, 2, 3, 4]);
});

t.test('hosts do not wait for each other', async (t) => {
  const semaphore = new HostSemaphore(1);
  await semaphore.enter('one', patience);
  t.type(await semaphore.enter('two', patience), 'function');
});

t.test('a caller that gives up leaves the queue', async (t) => {
  const semaphore = new HostSemaphore(1);
  const leave = await semaphore.enter('host', patience);
  const controller = new AbortController();
  const impatient = semaphore.enter('host', controller.signal);
  const patient = semaphore.enter('host', patience);
  controller.abort(new Error('enough'));
  await t.rejects(impatient, { message: 'enough' });
  leave();
  const second = await patient;
  second();
  const third = await semaphore.enter('host', controller.signal).catch((error: Error) => error.message);
  t.equal(third, 'enough', 'a late one does not even enter');
  t.type(await semaphore.enter('host', patience), 'function', 'and the place is free');
});

t.test('a registry behind a mirror gets at most half of its places', async (t) => {
  const semaphore = new HostSemaphore(4);
  const slow = await Promise.all([
    semaphore.enter('mirror', patience, 'mirror for slow'),
    semaphore.enter('mirror', patience, 'mirror for slow'),
  ]);
  const order: string[] = [];
  void semaphore.enter('mirror', patience, 'mirror for slow').then(() => order.push('slow'));
  const others = ['one', 'two'].map((name) =>
    semaphore.enter('mirror', patience, `mirror for ${name}`).then((leave) => {
      order.push(name);
      return leave;
    }),
  );
  await settle();
  t.same(order, ['one', 'two'], 'the others pass the one that waits');
  const late = semaphore.enter('mirror', patience, 'mirror for late').then(() => order.push('late'));
  const [leave] = await Promise.all(others);
  leave?.();
  await late;
  t.same(order, ['one', 'two', 'late'], 'a place in general is none for the slow one');
  slow[0]?.();
  await settle();
  t.same(order, ['one', 'two', 'late', 'slow']);
});

t.test('the host itself may use all places', async (t) => {
  const semaphore = new HostSemaphore(4);
  const leaves = await Promise.all([1, 2, 3, 4].map(() => semaphore.enter('host', patience)));
  t.equal(leaves.length, 4);
  t.type(
    await new HostSemaphore(1).enter('mirror', patience, 'mirror for one'),
    'function',
    'a lane has one place at least',
  );
});
