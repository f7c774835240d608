/** Which facts are confirmed before a refusal. `test/webhook/confirming.test.ts` has the rest. */
import { test } from 'tap';
import { toConfirm } from '../../src/cluster/confirm-refusal.ts';
import type { FactsWanted } from '../../src/cluster/facts-of-pod.ts';
import type { ImageFacts, PullPolicy } from '../../src/images/facts/facts.ts';
import { facts, failed } from '../support/placement-input.ts';

function wantedOf(image: string, pullPolicy: PullPolicy): FactsWanted {
  return {
    uses: [{ image, usedBy: ['c'], pullPolicy, volumeOnly: false }],
    namespace: 'shop',
    pullSecrets: { names: ['registry'] },
    serviceAccount: { namespace: 'shop', name: 'robot' },
    budgetMs: 7,
  };
}

const remembered = facts('amd64');
const cases: readonly (readonly [
  name: string,
  image: string,
  pullPolicy: PullPolicy,
  known: ImageFacts | undefined,
  isConfirmed: boolean,
])[] = [
  ['remembered of a tag', 'a:1', 'IfNotPresent', remembered, true],
  ['remembered, and old', 'a:1', 'IfNotPresent', facts('amd64', { stale: true }), true],
  ['a digest', `a:1@sha256:${'0'.repeat(64)}`, 'IfNotPresent', remembered, false],
  ['fresh from the registry', 'a:1', 'IfNotPresent', facts('amd64', { source: 'registry' }), false],
  ['an override', 'a:1', 'IfNotPresent', facts('amd64', { source: 'override' }), false],
  ['a failure', 'a:1', 'IfNotPresent', failed('not-an-image'), false],
  ['not known', 'a:1', 'IfNotPresent', undefined, false],
  ['looked up each time', 'a:1', 'Always', remembered, false],
  ['never pulled', 'a:1', 'Never', remembered, false],
  ['confirmed a moment ago', 'confirmed:1', 'IfNotPresent', remembered, false],
];

for (const [name, image, pullPolicy, known, isConfirmed] of cases) {
  test(`${name}: ${isConfirmed ? 'confirmed' : 'not confirmed'}`, (t) => {
    const wanted = wantedOf(image, pullPolicy);
    const found = new Map(known === undefined ? [] : [[image, known]]);
    const confirmed = toConfirm(wanted, found, (each) => each === 'confirmed:1');
    t.strictSame(
      confirmed,
      isConfirmed ? { ...wanted, uses: [{ ...wanted.uses[0], pullPolicy: 'Always' }] } : undefined,
    );
    t.end();
  });
}
