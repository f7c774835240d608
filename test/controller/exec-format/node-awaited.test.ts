import t from 'tap';
import { createNodeAwaited } from '../../../src/controller/exec-format/node-awaited.ts';

t.test('longer each time, then no more, until something changes', (t) => {
  const awaited = createNodeAwaited();
  const pauses = (): unknown[] => Array.from({ length: 8 }, () => awaited.next('shop/web'));
  const all = [500, 1000, 2000, 4000, 8000, 16_000, undefined, undefined];
  t.same(pauses(), all);
  t.equal(awaited.next('shop/other'), 500, 'each pod by itself');
  t.equal(awaited.next('shop/web'), undefined);
  awaited.forget('shop/web');
  t.same(pauses(), all);
  t.end();
});
