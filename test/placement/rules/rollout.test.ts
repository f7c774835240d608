/** A rollout chooses among what the images have and the pod permits, and never more. */
import { test } from 'tap';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { recordedRollout } from '../../../src/placement/record/read.ts';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import type { NewPods, Policy } from '../../../src/policy/effective/policy.ts';
import { failed, inputOf, outcomeOf, podOf, type Known } from '../../support/placement-input.ts';

interface Case {
  readonly known?: Known;
  readonly newPods: NewPods;
  readonly spec?: Partial<PodSpec>;
  readonly policy?: Partial<Policy>;
  readonly template?: PlacementInput['template'];
  /** As `outcomeOf` writes it. */
  readonly decided: string;
  readonly rule?: string;
}

const required = (operator: string, ...values: string[]): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/arch', operator, values }] }],
      },
    },
  },
});

const cases: Readonly<Record<string, Case>> = {
  'to its architecture': { newPods: 'Target', decided: 'placed arm64', rule: 'rollout-target' },
  'to the others': { newPods: 'Other', decided: 'placed amd64 s390x', rule: 'rollout-other' },
  'the controller chooses': { newPods: 'Choose', decided: 'gated amd64 arm64 s390x', rule: 'rollout-choose' },
  'images without it': { known: { a: 'amd64 s390x' }, newPods: 'Target', decided: 'placed amd64 s390x' },
  'images with nothing else': { known: { a: 'arm64' }, newPods: 'Other', decided: 'placed arm64' },
  'an own architecture': {
    newPods: 'Target',
    spec: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
    decided: 'own-constraint',
  },
  'an own architecture, under constraints: widen': {
    newPods: 'Target',
    policy: { constraints: 'widen' },
    spec: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
    decided: 'own-constraint',
  },
  'own terms that exclude it': {
    newPods: 'Choose',
    spec: required('NotIn', 'arm64'),
    decided: 'placed amd64 arm64 s390x',
  },
  'an unknown image': { known: { a: failed('timeout') }, newPods: 'Target', decided: 'gated' },
  'images that constrain nothing': { known: { a: '' }, newPods: 'Target', decided: 'unconstrained' },
  'a template': { newPods: 'Other', template: 'DaemonSet', decided: 'placed amd64 arm64 s390x' },
};

for (const [
  about,
  { known = { a: 'amd64 arm64 s390x' }, newPods, spec, policy: more, template, decided, rule },
] of Object.entries(cases))
  test(about, async (t) => {
    const pod = podOf(['a'], spec);
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
      t.same(recordedRollout({ metadata: { annotations: text } }), { name: 'web', side: newPods });
    }
  });
