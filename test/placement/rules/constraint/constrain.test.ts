/**
 * Images without a common architecture, rollouts, and allowed architectures. `decide.test.ts` judges where pods
 * land.
 */
import { test } from 'tap';
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import { decide } from '../../../../src/placement/decide.ts';
import { uncheckedRecord } from '../../../../src/placement/record/read.ts';
import type { NewPods, Policy } from '../../../../src/policy/effective/policy.ts';
import { like } from '../../../support/like.ts';
import {
  archIn,
  inputOf,
  onArch,
  outcomeOf,
  place,
  placePod,
  podOf,
  requiring,
  termOf,
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

const apart = { a: 'amd64', b: 'arm64', c: 'windows/amd64' };

const windowsPod = { nodeSelector: { 'kubernetes.io/os': 'windows' } };
const cannot = 'no architecture can run all images';
const aAndB = 'a has amd64; b has arm64';
const refusals: readonly (readonly [images: string, message: string, Partial<Policy>?, Partial<PodSpec>?])[] =
  [
    ['a b c', `${cannot}: ${aAndB}; c has no platform for linux, only windows/amd64`],
    ['a', `${cannot} on windows: a has no platform for windows, only linux/amd64`, {}, windowsPod],
    [
      'a',
      'no architecture of the schedulable ones (arm64, s390x) can run all images: a has amd64',
      { schedulableArchitectures: ['arm64', 's390x'] },
    ],
  ];

test('deny names each image and its architectures', async (t) => {
  for (const [images, message, policy, spec] of refusals) {
    const { decision, patch } = place(inputOf(podOf(images.split(' '), spec), apart, policy));
    t.equal(outcomeOf(decision), 'denied none');
    t.equal(decision.message, message);
    t.strictSame([decision.warnings, patch], [[], []], 'the refusal has the message');
  }
});

test('`pend` requires an architecture that no node has, `allow` admits the pod, both with a warning', async (t) => {
  for (const [onNoCommonArchitecture, outcome, added] of [
    ['pend', 'pending', requiring(termOf(archIn('no-common-architecture'))).affinity],
    ['allow', 'unconstrained', undefined],
  ] as const) {
    const { decision, pod } = placePod(['a', 'b'], apart, { onNoCommonArchitecture });
    t.equal(decision.outcome, outcome);
    t.strictSame(decision.warnings, [`archwright: ${cannot}: ${aAndB}`]);
    t.equal(decision.message, outcome === 'pending' ? `${cannot}: ${aAndB}` : undefined);
    t.strictSame(pod.spec.affinity, added);
  }
});

test('a message about many images with long names is bounded and printable', async (t) => {
  const images = Array.from(
    { length: 3000 },
    (_, index) => `registry.example/\u001b[31m\u202e${'x'.repeat(200)}-${index}:1`,
  );
  const decision = decide(
    inputOf(
      podOf(images),
      {},
      {},
      {
        facts: (image) =>
          inputOf(podOf([]), { [image]: image.endsWith('1:1') ? 'amd64' : 'arm64' }).facts(image),
      },
    ),
  );
  t.equal(decision.outcome, 'denied');
  t.ok(Buffer.byteLength(decision.message ?? '') < 2400);
  t.match(decision.message, /; and [0-9]+ more$/u);
  t.notMatch(decision.message, /\p{C}/u);
});
