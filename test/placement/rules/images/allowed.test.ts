/** Allowed architectures of custom resources, in messages. `decide.test.ts` judges what they restrict. */
import { test } from 'tap';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import { decide } from '../../../../src/placement/decide.ts';
import { inputOf, onArch, outcomeOf, placePod, podOf } from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const origin = 'PodPlacementConfig shop/db';
const allowed = (...architectures: string[]): Partial<Policy> => ({ allowed: { architectures, origin } });

test('messages name the custom resource and what it allows', async (t) => {
  const { decision } = placePod(['a'], { a: 'amd64' }, allowed('s390x'));
  t.equal(
    decision.message,
    'no architecture of those that PodPlacementConfig shop/db allows (s390x) can run all images: a has amd64',
  );
  const none = placePod(['a'], {}, { ...allowed('s390x'), schedulableArchitectures: ['amd64'] });
  t.equal(outcomeOf(none.decision), 'denied none');
  t.match(
    none.decision.message,
    /^there is no architecture of the schedulable ones \(amd64\), and of those that .* allows \(s390x\)$/,
  );
  const input = inputOf(podOf(['a']), { a: 'amd64' }, allowed('s390x'));
  like(t, decide({ ...input, template: 'workload' }).warnings, [
    /cannot be placed: no architecture of those that PodPlacementConfig shop\/db allows/,
  ]);
});

test('the restriction is a reason, unless the pod keeps its own constraint', async (t) => {
  const reasons = (known: string, policy: Partial<Policy>, spec = {}) => {
    const { decision } = placePod(['a'], { a: known }, policy, spec);
    return decision.reasons
      .filter(({ rule }) => rule === 'allowed-architectures')
      .map(({ message }) => message);
  };
  t.strictSame(reasons('', allowed('amd64', 's390x')), [`${origin} allows amd64, s390x`]);
  t.strictSame(reasons('amd64 arm64', allowed('amd64'), onArch('arm64')), []);
  t.strictSame(reasons('amd64', {}), []);
});
