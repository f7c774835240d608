import t from 'tap';
import { inTurn } from '../../src/async/fair-queue.ts';

t.test('keys take turns, and what has several keys comes once', async (t) => {
  const items = ['a1', 'a2', 'a3', 'ab', 'b1', 'c1'];
  const keysOf = (item: string) => item.replace(/\d/, '').split('');
  t.strictSame(inTurn(items, keysOf), ['a1', 'ab', 'c1', 'a2', 'b1', 'a3']);
  t.strictSame(inTurn([], keysOf), []);
});
