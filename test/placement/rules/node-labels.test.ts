import { test } from 'tap';
import { expressionGroups } from '../../../src/placement/patch/additions.ts';
import { nodeLabelsOf } from '../../../src/placement/rules/node-labels.ts';
import { decide } from '../../../src/placement/decide.ts';
import {
  defaultPolicy,
  inputOf,
  isIn,
  place,
  podOf,
  requiring,
  termOf,
  withLabels,
} from '../../support/placement-input.ts';

const rules = (labels: Record<string, string>) => withLabels(labels);

test('labels of the pod for its node', async (t) => {
  const policy = {
    ...defaultPolicy,
    matchNodeLabels: ['rack', 'row', 'empty', 'bad', 'none', 'constructor'],
  };
  const labels = { rack: 'r1', row: '2', empty: '', bad: 'a b', none: null as unknown as string, other: 'x' };
  t.strictSame(nodeLabelsOf(policy, labels, undefined).matched, { rack: 'r1', row: '2', empty: '' });
  t.strictSame(nodeLabelsOf(policy, undefined, undefined).matched, {});
  t.strictSame(nodeLabelsOf(policy, null, undefined).matched, {});
  t.strictSame(nodeLabelsOf(defaultPolicy, labels, undefined).matched, {});
});

test('labels of architectures', async (t) => {
  const policy = { ...defaultPolicy, architectures: { arm64: rules({ pool: 'arm' }), amd64: rules({}) } };
  const { byArchitecture } = nodeLabelsOf(policy, {}, ['amd64', 'arm64', 'constructor']);
  t.strictSame(byArchitecture, { arm64: { pool: 'arm' } });
  t.strictSame(nodeLabelsOf(policy, {}, undefined).byArchitecture, {});
});

test('architectures with the same labels share a group', async (t) => {
  const nodeLabelsByArchitecture = { b: { x: '1', y: '2' }, c: { y: '2', x: '1' }, d: { x: '2' } };
  const groups = expressionGroups(
    { required: ['a', 'b', 'c', 'd', 'e'], nodeLabelsByArchitecture, nodeLabels: { z: '0' } },
    false,
  );
  const text = groups.map((group) => group.map(({ key, values }) => `${key}=${values?.join('|')}`).join(' '));
  t.strictSame(text, [
    'kubernetes.io/arch=a|e z=0',
    'kubernetes.io/arch=b|c x=1 y=2 z=0',
    'kubernetes.io/arch=d x=2 z=0',
  ]);
});

test('no groups without a requirement, or under a pin', async (t) => {
  const some = { nodeLabelsByArchitecture: {}, nodeLabels: {} };
  t.strictSame(expressionGroups({ ...some, required: undefined }, false), []);
  t.strictSame(expressionGroups({ ...some, required: ['a'] }, true), []);
  t.strictSame(expressionGroups({ ...some, required: ['a'], nodeLabels: { z: '0' } }, true), [
    [isIn('z', '0')],
  ]);
});

test('matched labels apply even if no image constrains the architecture', async (t) => {
  const { pod, decision } = place(
    inputOf(podOf(['a'], {}, { labels: { rack: 'r1' } }), { a: '' }, { matchNodeLabels: ['rack'] }),
  );
  t.equal(decision.outcome, 'unconstrained');
  t.strictSame(pod.spec.affinity, requiring([termOf(isIn('rack', 'r1'))]).affinity);
});

test('both kinds have a reason', async (t) => {
  const policy = { matchNodeLabels: ['rack'], architectures: { arm64: rules({ pool: 'arm' }) } };
  const { reasons } = decide(inputOf(podOf(['a'], {}, { labels: { rack: 'r1' } }), { a: 'arm64' }, policy));
  t.match(reasons, [
    { rule: 'required-architectures' },
    { rule: 'require-node-labels', message: 'arm64: pool=arm' },
    { rule: 'match-node-labels', message: 'rack=r1' },
  ]);
});
