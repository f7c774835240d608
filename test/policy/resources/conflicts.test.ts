import t from 'tap';
import { conflictsAmong } from '../../../src/policy/resources/conflicts.ts';
import type { PodPlacement } from '../../../src/policy/resources/placement.ts';
import { placement } from './pod-placement.ts';

const turn = (): undefined => undefined;

t.test('objects of the same priority for the same pods conflict', async (t) => {
  const cases: [about: string, placements: PodPlacement[], conflicts: [string, string][]][] = [
    ['one', [placement('a', 0, 0)], []],
    ['other priorities', [placement('a', 0, 0), placement('b', 1, 0)], []],
    ['the younger one loses', [placement('a', 0, 2), placement('b', 0, 1)], [['a', 'b']]],
    ['of the same age, the later name loses', [placement('b', 0, 1), placement('a', 0, 1)], [['b', 'a']]],
    ['other pods', [placement('a', 0, 1, 'web'), placement('b', 0, 2, 'api')], []],
    ['all pods and some', [placement('a', 0, 1, 'web'), placement('b', 0, 2)], [['b', 'a']]],
    [
      'two objects conflict with the first',
      [placement('a', 3, 1), placement('b', 3, 2, 'web'), placement('c', 3, 3, 'api')],
      [
        ['b', 'a'],
        ['c', 'a'],
      ],
    ],
    [
      'each priority separately',
      [placement('a', 3, 1), placement('b', 2, 2), placement('c', 2, 3), placement('d', 1, 0)],
      [['c', 'b']],
    ],
  ];
  for (const [about, placements, conflicts] of cases) {
    const found = await conflictsAmong(placements, { turn });
    t.same([...found.winners], conflicts, about);
    t.equal(found.unknown.size, 0);
  }
});

t.test('each object names the first one that it conflicts with', async (t) => {
  const { winners } = await conflictsAmong(
    [
      placement('all', 0, 0),
      placement('web-1', 0, 1, 'web'),
      placement('web-2', 0, 2, 'web'),
      placement('web-other', 1, 2, 'web'),
    ],
    { turn },
  );
  t.same(
    [...winners],
    [
      ['web-1', 'all'],
      ['web-2', 'all'],
    ],
  );
});

t.test('comparing 10,000 objects of one priority is bounded and yields to the event loop', async (t) => {
  const many = Array.from({ length: 10_000 }, (_, n) => placement(`p${n}`, 0, n, `app-${n}`));
  let turns = 0;
  const { winners, unknown } = await conflictsAmong(many, { turn: () => void turns++ });
  t.equal(winners.size, 0);
  t.ok(unknown.size > 5000 && unknown.size < 8000, `${unknown.size} are not compared`);
  t.notOk(unknown.has('p2000'));
  t.ok(turns > 4000, `${turns} slices`);
  const again = await conflictsAmong(many.toReversed(), { turn });
  t.same([...again.unknown], [...unknown], 'the same result in any order');
});

t.test('large selectors cost more', async (t) => {
  const values = Array.from({ length: 1000 }, (_, n) => `v${n}`);
  const large = Array.from({ length: 100 }, (_, n) => ({
    ...placement(`p${n}`, 0, n),
    selector: [
      { key: 'app', operator: 'NotIn' as const, values },
      { key: 'number', operator: 'In' as const, values: [String(n)] },
    ],
  }));
  const { unknown } = await conflictsAmong(large, { turn });
  t.ok(unknown.size > 80, `${unknown.size} are not compared`);
});

t.test('beyond the limit, the first object of each priority is still known', async (t) => {
  const { unknown } = await conflictsAmong(
    [placement('a', 2, 0), placement('b', 2, 1), placement('c', 1, 0), placement('d', 1, 1)],
    { turn, most: 0 },
  );
  t.same([...unknown], ['b', 'd']);
});
