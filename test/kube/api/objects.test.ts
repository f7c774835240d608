import t from 'tap';
import { timeOf } from '../../../src/kube/api/objects.ts';

t.test('a time that is no text is not known', async (t) => {
  t.equal(timeOf('2026-11-27T10:00:00Z'), Date.UTC(2026, 10, 27, 10));
  for (const value of [undefined, null, '', 'soon', 5, { toString: 'toString' }]) t.equal(timeOf(value), 0);
});
