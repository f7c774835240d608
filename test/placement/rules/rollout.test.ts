/** A rollout chooses among what the images have and the pod permits, and never more. */
import { test } from 'tap';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../src/placement/decision.ts';
import { patchGatedPod, patchPod } from '../../../src/placement/patch/patch.ts';
import { recordedWidened, uncheckedRecord } from '../../../src/placement/record/read.ts';
import type { ObjectMeta, PodSpec } from '../../../src/kube/api/objects.ts';
import type { NewPods, Policy } from '../../../src/policy/effective/policy.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
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
} from '../../support/placement-input.ts';

interface Case {
  readonly known?: Known;
  readonly newPods: NewPods;
  readonly spec?: Partial<PodSpec>;
  readonly policy?: Partial<Policy>;
  readonly metadata?: ObjectMeta;
  readonly template?: PlacementInput['template'];
  /** As `outcomeOf` writes it. */
  readonly decided: string;
  readonly rule?: string;
}

const widened = {
  policy: { constraints: 'widen' },
  spec: onArch('amd64'),
} as const;

const cases: Readonly<Record<string, Case>> = {
  'to its architecture': { newPods: 'Target', decided: 'placed arm64', rule: 'rollout-target' },
  'to the others': { newPods: 'Other', decided: 'placed amd64 s390x', rule: 'rollout-other' },
  'the controller chooses': { newPods: 'Choose', decided: 'gated amd64 arm64 s390x', rule: 'rollout-choose' },
  'images without it': { known: { a: 'amd64 s390x' }, newPods: 'Target', decided: 'placed amd64 s390x' },
  'images with nothing else': { known: { a: 'arm64' }, newPods: 'Other', decided: 'placed arm64' },
  'an own architecture': {
    newPods: 'Target',
    spec: onArch('amd64'),
    decided: 'own-constraint',
  },
  'an own architecture that is widened': {
    ...widened,
    newPods: 'Target',
    decided: 'placed arm64',
    rule: 'rollout-target',
  },
  'an own architecture that is widened, to the others': {
    ...widened,
    newPods: 'Other',
    decided: 'placed amd64 s390x',
    rule: 'rollout-other',
  },
  'an own architecture that is widened, and the controller chooses': {
    ...widened,
    newPods: 'Choose',
    decided: 'gated amd64 arm64 s390x',
    rule: 'rollout-choose',
  },
  'its own architecture is that of the rollout': {
    ...widened,
    newPods: 'Other',
    spec: onArch('arm64'),
    decided: 'own-constraint',
  },
  'a person pins it by a label': {
    newPods: 'Target',
    policy: { preferenceMode: 'hard' },
    metadata: { labels: { 'arch.example/preferred': 'amd64' } },
    decided: 'placed amd64',
  },
  'own terms that exclude it': {
    newPods: 'Choose',
    spec: requiring(termOf(notIn(archLabel, 'arm64'))),
    decided: 'placed amd64 arm64 s390x',
  },
  'an unknown image': { known: { a: failed('timeout') }, newPods: 'Target', decided: 'gated' },
  'images that constrain nothing': { known: { a: '' }, newPods: 'Target', decided: 'unconstrained' },
  'a template': { newPods: 'Other', template: 'DaemonSet', decided: 'placed amd64 arm64 s390x' },
};

for (const [
  about,
  { known = { a: 'amd64 arm64 s390x' }, newPods, spec, metadata, policy: more, template, decided, rule },
] of Object.entries(cases))
  test(about, async (t) => {
    const pod = podOf(['a'], spec, metadata);
    const policy = { ...more, rollout: { name: 'web', architecture: 'arm64', newPods } };
    const decision = decide(inputOf(pod, known, policy, template === undefined ? {} : { template }));
    t.equal(outcomeOf(decision), decided);
    const said = decision.reasons.map((each) => each.rule).filter((each) => each.startsWith('rollout-'));
    t.same(said, rule === undefined ? [] : [rule]);
    t.equal(decision.gate, decision.outcome === 'gated');
    const isChosen = rule === 'rollout-target' || rule === 'rollout-other';
    t.same(decision.rollout, isChosen ? { name: 'web', side: newPods } : undefined);
    const record = patchPod(pod, decision).find(({ path }) => path.startsWith('/metadata/annotations'));
    if (isChosen) {
      const value = record && 'value' in record ? record.value : undefined;
      const text =
        typeof value === 'string' ? { 'arch.example/decision': value } : (value as Record<string, string>);
      t.same(uncheckedRecord({ metadata: { annotations: text } }).rollout, { name: 'web', side: newPods });
    }
  });

/** What a pod that names amd64 waits with, and how it goes on from there. */
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
    t.same(first.reasons.map(({ rule }) => rule).slice(0, 2), ['rollout-choose', 'constraint-widened']);
    t.match(first.warnings, [/is widened to amd64, arm64, s390x/]);
    t.strictSame(gated.spec.nodeSelector, {});
    t.strictSame(termsOf(gated), [{ matchExpressions: [archIn('amd64', 'arm64', 's390x')] }]);
    t.equal(outcomeOf(decision), `placed ${architectures.join(' ')}`);
    t.strictSame(gatedUpdateFaults(gated, pod), []);
    t.strictSame(termsOf(pod), [
      { matchExpressions: [archIn('amd64', 'arm64', 's390x'), archIn(...architectures)] },
    ]);
    t.same(uncheckedRecord(pod).rollout, { name: 'web', side: newPods });
    t.match(recordedWidened({ pod }), widened.spec, 'it still says what the pod named');
  }
});

test('a pod that was widened and waits keeps what it would have had without the rollout', async (t) => {
  const { pod: own } = widenedAndChosen('Other', { architectures: { amd64: withLabels({ pool: 'x' }) } });
  t.notMatch(JSON.stringify(own.spec), 'pool', 'labels of nodes are not required of what it named');
  const allowed = { architectures: ['s390x', 'arm64'], origin: 'PodPlacementConfig shop/web' };
  t.equal(outcomeOf(widenedAndChosen('Other', { allowed }).decision), 'placed amd64 s390x');
  const hard = { preferenceMode: 'hard', preference: { weights: { s390x: 100 }, origin: 'test' } } as const;
  t.equal(outcomeOf(widenedAndChosen('Other', hard).decision), 'placed amd64 s390x');
});

test('a waiting pod whose policy, names or record changed is placed by its images', async (t) => {
  const { gated, later } = widenedAndChosen('Target');
  const keep = decide({ ...later, policy: { ...later.policy, constraints: 'keep' } });
  t.equal(outcomeOf(keep), 'placed arm64');
  t.ok(keep.widened, 'what it named stays in its record');
  const seal = { of: () => '', isOf: () => false };
  t.notOk(decide({ ...later, seal }).widened, 'a record that archwright did not write');
  const named = { ...gated, spec: { ...gated.spec, ...widened.spec } };
  t.equal(decide({ ...later, pod: named }).outcome, 'own-constraint', 'another webhook has the last word');
});
