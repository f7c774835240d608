/** A rollout chooses among architectures that the images have and the pod permits. */
import { test } from 'tap';
import { decide } from '../../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../../src/placement/decision.ts';
import { patchGatedPod, patchPod } from '../../../../src/placement/patch/patch.ts';
import { recordedWidened, uncheckedRecord } from '../../../../src/placement/record/read.ts';
import type { ObjectMeta, PodSpec } from '../../../../src/kube/api/objects.ts';
import type { NewPods, Policy } from '../../../../src/policy/effective/policy.ts';
import { gatedUpdateFaults } from '../../../support/gated-model.ts';
import {
  applied,
  archIn,
  failed,
  inputOf,
  outcomeOf,
  place,
  podOf,
  termsOf,
  withLabels,
  type Known,
  archLabel,
  notIn,
  onArch,
  requiring,
  termOf,
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

interface More {
  /** Architectures of the image. Default: amd64, arm64 and s390x. */
  readonly image?: Known[string];
  readonly spec?: Partial<PodSpec>;
  readonly policy?: Partial<Policy>;
  readonly metadata?: ObjectMeta;
  readonly template?: PlacementInput['template'];
}
/** The decision as `outcomeOf` writes it, and the name of its rule after `rollout-`, if one applies. */
type Case = readonly [newPods: NewPods, decided: string, rule?: string | undefined, more?: More];

const widened = { policy: { constraints: 'widen' }, spec: onArch('amd64') } as const;
const pinned: More = {
  policy: { preferenceMode: 'hard' },
  metadata: { labels: { 'arch.example/preferred': 'amd64' } },
};
const notArm = requiring(termOf(notIn(archLabel, 'arm64')));
const none = undefined;

const cases: Readonly<Record<string, Case>> = {
  'to the architecture of the rollout': ['Target', 'placed arm64', 'target'],
  'to the other architectures': ['Other', 'placed amd64 s390x', 'other'],
  'the controller chooses': ['Choose', 'gated amd64 arm64 s390x', 'choose'],
  'images without the architecture': ['Target', 'placed amd64 s390x', none, { image: 'amd64 s390x' }],
  'images with only this architecture': ['Other', 'placed arm64', none, { image: 'arm64' }],
  'an own architecture': ['Target', 'own-constraint', none, { spec: onArch('amd64') }],
  'an own architecture that is widened': ['Target', 'placed arm64', 'target', widened],
  'an own architecture that is widened, to the others': ['Other', 'placed amd64 s390x', 'other', widened],
  'an own architecture that is widened, and the controller chooses': [
    'Choose',
    'gated amd64 arm64 s390x',
    'choose',
    widened,
  ],
  'an own architecture that equals the one of the rollout': [
    'Other',
    'own-constraint',
    none,
    { ...widened, spec: onArch('arm64') },
  ],
  'a label that pins the pod': ['Target', 'placed amd64', none, pinned],
  'own terms that exclude the architecture': ['Choose', 'placed amd64 arm64 s390x', none, { spec: notArm }],
  'an unknown image': ['Target', 'gated', none, { image: failed('timeout') }],
  'images that constrain nothing': ['Target', 'unconstrained', none, { image: '' }],
  'a template': ['Other', 'placed amd64 arm64 s390x', none, { template: 'DaemonSet' }],
};

for (const [about, [newPods, decided, rule, more = {}]] of Object.entries(cases))
  test(about, async (t) => {
    const { image = 'amd64 arm64 s390x', spec, metadata, template } = more;
    const pod = podOf(['a'], spec, metadata);
    const policy = { ...more.policy, rollout: { name: 'web', architecture: 'arm64', newPods } };
    const decision = decide(inputOf(pod, { a: image }, policy, template && { template }));
    t.equal(outcomeOf(decision), decided);
    const rules = decision.reasons.map((each) => each.rule).filter((each) => each.startsWith('rollout-'));
    t.strictSame(rules, rule === undefined ? [] : [`rollout-${rule}`]);
    t.equal(decision.gate, decision.outcome === 'gated');
    const isChosen = rule === 'target' || rule === 'other';
    t.strictSame(decision.rollout, isChosen ? { name: 'web', side: newPods } : undefined);
    const record = patchPod(pod, decision).find(({ path }) => path.startsWith('/metadata/annotations'));
    if (isChosen) {
      const value = record && 'value' in record ? record.value : undefined;
      const text =
        typeof value === 'string' ? { 'arch.example/decision': value } : (value as Record<string, string>);
      t.strictSame(uncheckedRecord({ metadata: { annotations: text } }).rollout, {
        name: 'web',
        side: newPods,
      });
    }
  });

/** A pod that names amd64 and waits, and its decision after the choice. */
function widenedAndChosen(newPods: NewPods, more: Partial<Policy> = {}) {
  const known = { a: 'amd64 arm64 s390x' };
  const rollout = { name: 'web', architecture: 'arm64' };
  const policy = { ...widened.policy, ...more };
  const { pod: gated, decision: first } = place(
    inputOf(podOf(['a'], widened.spec), known, { ...policy, rollout: { ...rollout, newPods: 'Choose' } }),
  );
  const later = inputOf(gated, known, { ...policy, rollout: { ...rollout, newPods } }, { waiting: true });
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

test('a widened pod that waits keeps its placement without the rollout', async (t) => {
  const { pod: own } = widenedAndChosen('Other', { architectures: { amd64: withLabels({ pool: 'x' }) } });
  t.notMatch(JSON.stringify(own.spec), 'pool', 'labels are not required of nodes of its own architecture');
  const allowed = { architectures: ['s390x', 'arm64'], origin: 'PodPlacementConfig shop/web' };
  t.equal(outcomeOf(widenedAndChosen('Other', { allowed }).decision), 'placed amd64 s390x');
  const hard = { preferenceMode: 'hard', preference: { weights: { s390x: 100 }, origin: 'test' } } as const;
  t.equal(outcomeOf(widenedAndChosen('Other', hard).decision), 'placed amd64 s390x');
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
