import { isIn, requiring, termOf } from '../../support/placement-input.ts';
import { test } from 'tap';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import type { NodeGroup, Pullability } from '../../../src/placement/decision.ts';
import { able, decided, group, none, poor, type Case } from './pullable-setup.ts';

test('no node is excluded', async (t) => {
  const pinning = (requirement: object): Partial<PodSpec> => requiring([requirement]);
  const many = (count: number): NodeGroup =>
    group('poor', Array.from({ length: count }, (_, index) => `p${index}`).join(' '), 'amd64');
  const terms = (count: number): Partial<PodSpec> =>
    requiring(Array.from({ length: count }, (_, index) => termOf(isIn('zone', `z${index}`))));
  const usual: Pullability = { able: [able], unable: [poor] };
  const cases: [what: string, who: Pullability, given: Case, why: RegExp, warns: boolean][] = [
    [
      'no group can pull',
      { able: none, unable: [poor] },
      {},
      /^no nodes are known.*: app: no credential group can/,
      true,
    ],
    [
      'who can has another architecture',
      usual,
      { images: ['arm'] },
      /^no nodes are known that can pull and run/,
      true,
    ],
    [
      'the pod chose an architecture that they lack',
      usual,
      { spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } },
      /^no nodes are known/,
      true,
    ],
    [
      'the nodeSelector names a node',
      usual,
      { spec: { nodeSelector: { 'kubernetes.io/hostname': 'p1' } } },
      /itself/,
      false,
    ],
    [
      'a term names nodes',
      usual,
      { spec: pinning(termOf(isIn('kubernetes.io/hostname', 'p1'))) },
      /^the pod names its node itself/,
      false,
    ],
    [
      'a term pins a node',
      usual,
      { spec: pinning({ matchFields: [isIn('metadata.name', 'p1')] }) },
      /^the pod names its node itself/,
      false,
    ],
    [
      'the nodes have no names',
      { able: [able], unable: [group('poor', '')] },
      {},
      /^the nodes are not known by name/,
      false,
    ],
    [
      'their names are none',
      { able: [able], unable: [group('poor', `${'x'.repeat(64)} -a`)] },
      {},
      /not known by name/,
      false,
    ],
    ['too many nodes', { able: [able], unable: [many(251)] }, {}, /^251 nodes are too many to name/, false],
    [
      'too often',
      { able: [able], unable: [many(250)] },
      { spec: terms(3) },
      /^250 nodes are too many to name/,
      false,
    ],
  ];
  const apart = decided(
    { app: { able: [able], unable: [poor] }, side: { able: [poor], unable: [able] } },
    { images: ['app', 'side'] },
  );
  t.strictSame(apart.decision.excludedNodes, [], 'each image on other nodes only');
  t.match(apart.rules, [{ rule: 'pullable-nodes-left-out', message: /^no nodes are known/ }]);
  for (const [what, who, given, why, warns] of cases) {
    const { decision, rules } = decided({ app: who, arm: who }, given);
    t.strictSame(decision.excludedNodes, [], what);
    t.match(rules, [{ rule: 'pullable-nodes-left-out', message: why }], what);
    t.equal(
      decision.warnings.some((warning) => warning.startsWith('archwright: no nodes are known')),
      warns,
      what,
    );
    t.ok(Buffer.byteLength(rules[0]?.message ?? '') < 2048, what);
  }
  t.equal(
    decided({ app: { able: [able], unable: [many(250)] } }, { spec: terms(2) }).decision.excludedNodes.length,
    250,
  );
});
