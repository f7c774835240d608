import t from 'tap';
import { byPrecedence } from '../../../src/policy/resources/placement.ts';
import { placement } from './pod-placement.ts';

t.test('objects are ordered by priority, then age, then name', async (t) => {
  const sorted = [
    placement('high', 9, 3),
    placement('old', 5, 1),
    placement('a', 5, 2),
    placement('b', 5, 2),
    placement('low', 0, 0),
  ];
  for (let turn = 0; turn < sorted.length; turn++) {
    const mixed = [...sorted.slice(turn), ...sorted.slice(0, turn)].reverse();
    t.strictSame(
      mixed.sort(byPrecedence).map(({ name }) => name),
      ['high', 'old', 'a', 'b', 'low'],
    );
  }
});
