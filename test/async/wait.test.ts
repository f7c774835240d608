import t from 'tap';
import { unlessAborted } from '../../src/async/wait.ts';

t.test('unlessAborted settles like the promise, or rejects if the signal aborts first', async (t) => {
  const reason = new Error('no time');
  const controller = new AbortController();
  t.equal(await unlessAborted(Promise.resolve(1), controller.signal), 1);
  await t.rejects(unlessAborted(Promise.reject(new Error('own')), controller.signal), { message: 'own' });
  const waiting = t.rejects(unlessAborted(new Promise(() => {}), controller.signal), reason);
  controller.abort(reason);
  await waiting;
  await t.rejects(unlessAborted(Promise.resolve(1), controller.signal), reason, 'aborted before');
  await t.rejects(unlessAborted(Promise.reject(new Error('own')), controller.signal), reason, 'both');
});
