import t from 'tap';
import {
  byPrecedence,
  unschedulableArchitectures,
  withinSchedulable,
} from '../../../src/policy/resources/placement.ts';
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

t.test('unschedulable architectures are removed from weights and fallback', async (t) => {
  const preferences = { weights: { s390x: 1, arm64: 2, arm: 3 }, fallbackArchitecture: 's390x' };
  t.equal(withinSchedulable(preferences, []), preferences, 'an empty list allows every architecture');
  t.equal(withinSchedulable(preferences, ['s390x', 'arm64', 'arm']), preferences);
  t.strictSame(withinSchedulable(preferences, ['arm64']), {
    weights: { arm64: 2 },
    fallbackArchitecture: undefined,
  });
  t.strictSame(withinSchedulable(preferences, ['amd64']), {
    weights: undefined,
    fallbackArchitecture: undefined,
  });
  t.strictSame(withinSchedulable({ weights: undefined, fallbackArchitecture: 'arm' }, ['amd64']), {
    weights: undefined,
    fallbackArchitecture: undefined,
  });
  const outside = { weights: { amd64: 1 }, fallbackArchitecture: 'arm' };
  t.strictSame(withinSchedulable(outside, ['amd64']), {
    weights: { amd64: 1 },
    fallbackArchitecture: undefined,
  });
  t.strictSame(unschedulableArchitectures(preferences, ['amd64']), ['arm', 'arm64', 's390x']);
  t.strictSame(unschedulableArchitectures(preferences, []), []);
  t.strictSame(
    unschedulableArchitectures({ weights: undefined, fallbackArchitecture: undefined }, ['amd64']),
    [],
  );
});
