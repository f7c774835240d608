import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import type { NodeSelectorTerm, Toleration } from '../../../../src/kube/api/objects.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import { covers } from '../../../../src/placement/pod/expressions.ts';
import { ownFieldsOf } from '../../../../src/placement/record/own-fields.ts';
import { addedTolerations } from '../../../../src/placement/rules/nodes/tolerations.ts';
import {
  defaultPolicy,
  inputOf,
  isIn,
  type Known,
  place,
  podOf,
  requiring,
} from '../../../support/placement-input.ts';
import { tolerates } from '../../../support/scheduler-model.ts';

const template = { key: 'supported-arch', operator: 'Equal' as const, effect: 'NoSchedule' as const };
const equal = (value: string): Toleration => ({ ...template, value });
const key = 'kubernetes.io/arch';
const gke: Toleration = { key, operator: 'Equal', value: 'arm64', effect: 'NoSchedule' };
function tolerationsFor(policy: Policy, required: readonly string[]): readonly Toleration[] {
  const fields = ownFieldsOf({ containers: [] }, undefined);
  return addedTolerations({ policy, fields }, { outcome: 'placed' }, required).added;
}
const policy: Policy = {
  ...defaultPolicy,
  tolerations: [template],
  architectures: { arm64: { taintsToTolerate: [gke], requireNodeLabels: {} } },
};

test('two sources of the same toleration add it once, and no field is added', async (t) => {
  const twice: Policy = {
    ...defaultPolicy,
    tolerations: [{ key: 'kubernetes.io/arch', operator: 'Equal', effect: 'NoSchedule' }],
    architectures: policy.architectures,
  };
  t.strictSame(tolerationsFor(twice, ['arm64']), [gke]);
  t.strictSame(tolerationsFor(defaultPolicy, ['constructor']), [], 'inherited members are no rules');
  const open = { ...defaultPolicy, tolerations: [{ key: 'k', operator: 'Equal' as const }] };
  const text = JSON.stringify(tolerationsFor(open, ['arm64']));
  t.equal(text, '[{"key":"k","operator":"Equal","value":"arm64"}]');
});

const anyToleration: fc.Arbitrary<Toleration> = fc
  .record(
    {
      key: fc.constantFrom('k', 'x', ''),
      operator: fc.constantFrom('Equal', 'Exists'),
      value: fc.constantFrom('', 'v'),
      effect: fc.constantFrom('', 'NoSchedule', 'NoExecute'),
    },
    { requiredKeys: [] },
  )
  .map(({ value = '', ...rest }) =>
    rest.operator === 'Exists' ? rest : { value, ...rest, key: rest.key || 'k' },
  );

/** Nodes with one taint each, also with a key and a value that no toleration names. */
const tainted = ['k', 'x', 'other'].flatMap((key) =>
  ['', 'v', 'other'].flatMap((value) =>
    ['NoSchedule', 'NoExecute'].map((effect) => ({ name: '', labels: {}, taints: [{ key, value, effect }] })),
  ),
);

test('a toleration covers another one if it tolerates the same taints, for at least as long', async (t) => {
  const property = fc.property(anyToleration, anyToleration, (present, wanted) => {
    const isCovered = tainted.every((node) => !tolerates([wanted], node) || tolerates([present], node));
    assert.equal(covers(present, wanted), isCovered);
  });
  fc.assert(property, { numRuns: 2000 });
  const five = { ...gke, tolerationSeconds: 5 };
  t.equal(covers(five, gke), false);
  t.equal(covers(five, five), true);
  t.equal(covers({ ...gke, tolerationSeconds: 4 }, five), false);
  t.equal(covers(gke, five), true);
  t.equal(covers({ ...equal('5'), operator: 'Gt' }, equal('5')), false);
});

test("a pod that can run on any architecture tolerates only archwright's own taint", async (t) => {
  const tainting: Policy = {
    ...policy,
    tolerations: [template],
    ownTaintKey: 'supported-arch',
    onUnknownImage: 'allow',
  };
  const any: Toleration = { key: 'supported-arch', operator: 'Exists', effect: 'NoSchedule' };
  const cases: [name: string, policy: Policy, known: Known, expected: readonly Toleration[] | undefined][] = [
    ['an artifact', tainting, { a: '' }, [any]],
    ['an admitted unknown image', tainting, {}, [any]],
    ['an unknown image beside a known one, which restricts it', tainting, { b: 'amd64' }, [equal('amd64')]],
    ['an unknown image behind the gate', { ...tainting, onUnknownImage: 'gate' }, {}, undefined],
    ['without taints of ours', { ...policy, onUnknownImage: 'allow' }, {}, undefined],
    ['known images', tainting, { a: 'amd64', b: 'amd64' }, [equal('amd64')]],
  ];
  for (const [name, given, known, expected] of cases) {
    const images = name === 'an artifact' ? ['a'] : ['a', 'b'];
    const first = place(inputOf(podOf(images), known, given));
    t.strictSame(first.pod.spec.tolerations, expected, name);
    const second = place(inputOf(first.pod, known, given));
    t.strictSame(second.pod.spec.tolerations, expected, `${name}, second call`);
  }
  const pinned: NodeSelectorTerm = { matchFields: [isIn('metadata.name', 'n1')] };
  const toItsNode = podOf(['a'], requiring(pinned));
  const onIt = (known: Known): readonly Toleration[] | undefined =>
    place(inputOf(toItsNode, known, tainting)).pod.spec.tolerations;
  t.strictSame(onIt({}), [any], 'a pod that names its node, with an unknown image');
  t.strictSame(onIt({ a: '' }), [any], 'a pod that names its node, with an artifact');
  t.strictSame(onIt({ a: 'amd64' }), [equal('amd64')], 'a pod that names its node');
  const byItself = podOf(['a'], { nodeSelector: { 'kubernetes.io/arch': 'amd64' } });
  t.strictSame(place(inputOf(byItself, {}, tainting)).pod.spec.tolerations, [equal('amd64')]);
  const own = podOf(['a'], { tolerations: [{ operator: 'Exists' }] });
  t.strictSame(place(inputOf(own, {}, tainting)).pod.spec.tolerations, [{ operator: 'Exists' }]);
});
