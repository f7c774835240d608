/** Rollouts and allowed architectures, which restrict what the images have. `decide.test.ts` judges where pods land. */
import { test } from 'tap';
import { decide } from '../../../../src/placement/decide.ts';
import { uncheckedRecord } from '../../../../src/placement/record/read.ts';
import type { NewPods, Policy } from '../../../../src/policy/effective/policy.ts';
import { like } from '../../../support/like.ts';
import {
  inputOf,
  onArch,
  outcomeOf,
  place,
  placePod,
  podOf,
  together,
} from '../../../support/placement-input.ts';

const widened = { policy: { constraints: 'widen' }, spec: onArch('amd64') } as const;
const rollout = { name: 'web', architecture: 'arm64' };
const origin = 'PodPlacementConfig shop/db';
const allowed = (...architectures: string[]): Partial<Policy> => ({ allowed: { architectures, origin } });

test('the side of a rollout is a reason, and is recorded', async (t) => {
  const rows = [
    { newPods: 'Target', decided: 'placed arm64', rule: 'rollout-target' },
    { newPods: 'Other', decided: 'placed amd64 s390x', rule: 'rollout-other' },
    { newPods: 'Choose', decided: 'gated amd64 arm64 s390x', rule: 'rollout-choose' },
  ] as const;
  for (const { newPods, decided, rule } of rows) {
    const policy = { rollout: { ...rollout, newPods } };
    const { decision, pod } = placePod(['a'], { a: 'amd64 arm64 s390x' }, policy);
    t.equal(outcomeOf(decision), decided);
    const rules = decision.reasons.map((each) => each.rule).filter((each) => each.startsWith('rollout-'));
    t.strictSame(rules, [rule]);
    const side = newPods === 'Choose' ? undefined : { name: 'web', side: newPods };
    t.strictSame(decision.rollout, side);
    t.strictSame(uncheckedRecord(pod).rollout, side);
  }
  const free = placePod(['a'], { a: '' }, { rollout: { ...rollout, newPods: 'Target' } });
  t.equal(outcomeOf(free.decision), 'unconstrained', 'images that constrain nothing');
  for (const newPods of ['Target', 'Other', 'Choose'] as const) {
    const policy = { rollout: { ...rollout, newPods } };
    const { decision } = place(inputOf(podOf(['a'], together), { a: 'amd64 arm64' }, policy));
    t.equal(outcomeOf(decision), 'placed amd64 arm64', 'the group of the pod has chosen');
  }
});

/** A pod that names amd64 and waits, and its decision after the choice. */
function widenedAndChosen(newPods: NewPods, more: Partial<Policy> = {}) {
  const known = { a: 'amd64 arm64 s390x' };
  const choosing: Partial<Policy> = { ...widened.policy, rollout: { ...rollout, newPods: 'Choose' } };
  const { pod: gated } = place(inputOf(podOf(['a'], widened.spec), known, choosing));
  const policy = { ...choosing, ...more, rollout: { ...rollout, newPods } };
  const later = inputOf(gated, known, policy, { waiting: true });
  return { gated, later, decision: decide(later) };
}

test('a waiting pod with a changed policy, constraint or record is placed by its images', async (t) => {
  const { gated, later } = widenedAndChosen('Target');
  const { decision } = widenedAndChosen('Other', allowed('arm64'));
  t.equal(outcomeOf(decision), 'placed amd64', 'what it named itself is allowed');
  const keep = decide({ ...later, policy: { ...later.policy, constraints: 'keep' } });
  t.equal(outcomeOf(keep), 'placed arm64');
  t.ok(keep.widened, "the pod's own names stay in its record");
  const seal = { sign: () => '', verify: () => false };
  t.notOk(decide({ ...later, seal }).widened, 'a record that archwright did not write');
  const named = { ...gated, spec: { ...gated.spec, ...widened.spec } };
  t.equal(decide({ ...later, pod: named }).outcome, 'own-constraint', 'a constraint of another webhook wins');
});

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
