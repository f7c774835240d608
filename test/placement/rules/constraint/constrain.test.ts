/** A rollout chooses among architectures that the images have and the pod permits. */
import { test } from 'tap';
import { decide } from '../../../../src/placement/decide.ts';
import { patchGatedPod } from '../../../../src/placement/patch/patch.ts';
import { recordedWidened, uncheckedRecord } from '../../../../src/placement/record/read.ts';
import type { NewPods } from '../../../../src/policy/effective/policy.ts';
import { gatedUpdateFaults } from '../../../support/gated-model.ts';
import {
  applied,
  archIn,
  inputOf,
  outcomeOf,
  place,
  placePod,
  podOf,
  termsOf,
  together,
  onArch,
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const widened = { policy: { constraints: 'widen' }, spec: onArch('amd64') } as const;
const rollout = { name: 'web', architecture: 'arm64' };

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
function widenedAndChosen(newPods: NewPods) {
  const known = { a: 'amd64 arm64 s390x' };
  const { pod: gated, decision: first } = place(
    inputOf(podOf(['a'], widened.spec), known, {
      ...widened.policy,
      rollout: { ...rollout, newPods: 'Choose' },
    }),
  );
  const later = inputOf(
    gated,
    known,
    { ...widened.policy, rollout: { ...rollout, newPods } },
    { waiting: true },
  );
  const decision = decide(later);
  return { first, gated, later, decision, pod: applied(gated, patchGatedPod(gated, decision)) };
}

test('a pod is widened at its creation, and the choice narrows it', async (t) => {
  for (const [newPods, architectures] of [
    ['Target', ['arm64']],
    ['Other', ['amd64', 's390x']],
  ] as const) {
    const { first, gated, decision, pod } = widenedAndChosen(newPods);
    t.strictSame(first.reasons.map(({ rule }) => rule).slice(0, 2), ['rollout-choose', 'constraint-widened']);
    like(t, first.warnings, [/is widened to amd64, arm64, s390x/]);
    t.strictSame(gated.spec.nodeSelector, {});
    t.strictSame(termsOf(gated), [{ matchExpressions: [archIn('amd64', 'arm64', 's390x')] }]);
    t.equal(outcomeOf(decision), `placed ${architectures.join(' ')}`);
    t.strictSame(gatedUpdateFaults(gated, pod), []);
    t.strictSame(termsOf(pod), [
      { matchExpressions: [archIn('amd64', 'arm64', 's390x'), archIn(...architectures)] },
    ]);
    t.strictSame(uncheckedRecord(pod).rollout, { name: 'web', side: newPods });
    like(t, recordedWidened({ pod }), widened.spec, "the record still has the pod's own names");
  }
});

test('a waiting pod with a changed policy, constraint or record is placed by its images', async (t) => {
  const { gated, later } = widenedAndChosen('Target');
  const keep = decide({ ...later, policy: { ...later.policy, constraints: 'keep' } });
  t.equal(outcomeOf(keep), 'placed arm64');
  t.ok(keep.widened, "the pod's own names stay in its record");
  const seal = { sign: () => '', verify: () => false };
  t.notOk(decide({ ...later, seal }).widened, 'a record that archwright did not write');
  const named = { ...gated, spec: { ...gated.spec, ...widened.spec } };
  t.equal(decide({ ...later, pod: named }).outcome, 'own-constraint', 'a constraint of another webhook wins');
});
