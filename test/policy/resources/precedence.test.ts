import t from 'tap';
import type { Selector } from '../../../src/policy/label-selector.ts';
import type { PodPlacement } from '../../../src/policy/resources/placement.ts';
import { architecturesLeftOut, withinSchedulable } from '../../../src/policy/resources/architectures.ts';
import { byPrecedence, conflictsAmong } from '../../../src/policy/resources/precedence.ts';

function placement(name: string, priority: number, createdAt: number, app?: string): PodPlacement {
  const selector: Selector = app === undefined ? [] : [{ key: 'app', operator: 'In', values: [app] }];
  return {
    namespace: 'shop',
    name,
    createdAt,
    priority,
    selector,
    weights: undefined,
    fallbackArchitecture: undefined,
    onUnknownImage: undefined,
    onNoCommonArchitecture: undefined,
  };
}

t.test('priority, then age, then name', async (t) => {
  const sorted = [
    placement('high', 9, 3),
    placement('old', 5, 1),
    placement('a', 5, 2),
    placement('b', 5, 2),
    placement('low', 0, 0),
  ];
  for (let turn = 0; turn < sorted.length; turn++) {
    const mixed = [...sorted.slice(turn), ...sorted.slice(0, turn)].reverse();
    t.same(
      mixed.sort(byPrecedence).map(({ name }) => name),
      ['high', 'old', 'a', 'b', 'low'],
    );
  }
});

t.test('a conflict is the same priority for the same pods', async (t) => {
  const cases: [about: string, placements: PodPlacement[], conflicts: [string, string][]][] = [
    ['one', [placement('a', 0, 0)], []],
    ['other priorities', [placement('a', 0, 0), placement('b', 1, 0)], []],
    ['the younger one has it', [placement('a', 0, 2), placement('b', 0, 1)], [['a', 'b']]],
    ['of the same age, the later name', [placement('b', 0, 1), placement('a', 0, 1)], [['b', 'a']]],
    ['other pods', [placement('a', 0, 1, 'web'), placement('b', 0, 2, 'api')], []],
    ['all pods and some', [placement('a', 0, 1, 'web'), placement('b', 0, 2)], [['b', 'a']]],
    [
      'three, of which two conflict with the first',
      [placement('a', 3, 1), placement('b', 3, 2, 'web'), placement('c', 3, 3, 'api')],
      [
        ['b', 'a'],
        ['c', 'a'],
      ],
    ],
    [
      'each priority by itself',
      [placement('a', 3, 1), placement('b', 2, 2), placement('c', 2, 3), placement('d', 1, 0)],
      [['c', 'b']],
    ],
  ];
  for (const [about, placements, conflicts] of cases)
    t.same([...conflictsAmong(placements)], conflicts, about);
});

t.test('architectures that no node has', async (t) => {
  const wishes = { weights: { s390x: 1, arm64: 2, arm: 3 }, fallbackArchitecture: 's390x' };
  t.equal(withinSchedulable(wishes, []), wishes, 'any node can come');
  t.equal(withinSchedulable(wishes, ['s390x', 'arm64', 'arm']), wishes);
  t.same(withinSchedulable(wishes, ['arm64']), { weights: { arm64: 2 }, fallbackArchitecture: undefined });
  t.same(withinSchedulable(wishes, ['amd64']), { weights: undefined, fallbackArchitecture: undefined });
  t.same(withinSchedulable({ weights: undefined, fallbackArchitecture: 'arm' }, ['amd64']), {
    weights: undefined,
    fallbackArchitecture: undefined,
  });
  const outside = { weights: { amd64: 1 }, fallbackArchitecture: 'arm' };
  t.same(withinSchedulable(outside, ['amd64']), { weights: { amd64: 1 }, fallbackArchitecture: undefined });
  t.same(architecturesLeftOut(wishes, ['amd64']), ['arm', 'arm64', 's390x']);
  t.same(architecturesLeftOut(wishes, []), []);
  t.same(architecturesLeftOut({ weights: undefined, fallbackArchitecture: undefined }, ['amd64']), []);
});
