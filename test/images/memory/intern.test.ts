import t from 'tap';
import { createInterner } from '../../../src/images/memory/intern.ts';

t.test('equal values are kept once, and counted while they are used', async (t) => {
  const interner = createInterner<{ name: string }>(({ name }) => name.length * 100);
  const take = (name: string): ReturnType<typeof interner.take> => interner.take(name, () => ({ name }));
  const first = take('a');
  const bytes = interner.bytes;
  t.ok(bytes > 100);
  const again = interner.take('a', () => t.fail('it is there already') as never);
  const other = take('bb');
  t.equal(again.value, first.value);
  t.not(other.value, first.value);
  t.equal(interner.size, 2);
  t.ok(interner.bytes > bytes + 200);
  interner.release(other);
  t.equal(interner.bytes, bytes);
  interner.release(first);
  t.equal(interner.size, 1, 'still used once');
  t.equal(take('a').value, first.value);
  interner.release(again);
  interner.release(again);
  t.same([interner.size, interner.bytes], [0, 0]);
  t.not(take('a').value, first.value);
});
