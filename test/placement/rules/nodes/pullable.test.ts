/** `requirePullableNodes`: groups of nodes that can pull an image, and groups that cannot. */
import { test } from 'tap';
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import type { NodeGroup, PlacementInput, Pullability } from '../../../../src/placement/decision.ts';
import {
  archIn,
  expressionsOf,
  inputOf,
  isIn,
  notIn,
  place,
  podOf,
  requiring,
  termOf,
  type Known,
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const hosts = (...names: readonly string[]) => notIn('kubernetes.io/hostname', ...names);
const both: Known = { app: 'amd64 arm64', side: 'amd64 arm64', arm: 'arm64' };

/** A group with nodes, and its architectures. */
function group(name: string, hostnames: string, ...architectures: readonly string[]): NodeGroup {
  return { fingerprint: name, hostnames: hostnames.split(' ').filter(Boolean), architectures };
}
const able = group('able', 'a1 a2', 'amd64');
const poor = group('poor', 'p2 p1', 'amd64', 'arm64');
const none: readonly NodeGroup[] = [];
/** One group that can pull, and one that cannot. */
const pullability = { app: { able: [able], unable: [poor] } };

interface Case {
  readonly spec?: Partial<PodSpec>;
  readonly images?: readonly string[];
  readonly known?: Known;
  readonly policy?: Partial<PlacementInput['policy']>;
  readonly more?: Partial<PlacementInput>;
}

function decided(pullability: Readonly<Record<string, Pullability>>, given: Case = {}) {
  const { spec, images = ['app'], known = both, policy, more } = given;
  const pullable = { requirePullableNodes: true, ...policy };
  const input = inputOf(podOf(images, spec), known, pullable, {
    pullability: (image) => pullability[image],
    ...more,
  });
  const placed = place(input);
  return {
    ...placed,
    input,
    terms: expressionsOf(placed.pod),
    rules: placed.decision.reasons.filter(({ rule }) => rule.startsWith('pullable')),
  };
}

test('nodes that cannot pull are excluded by name, in addition to the architectures', async (t) => {
  const { terms, decision, rules } = decided(pullability);
  t.strictSame(terms, [[archIn('amd64', 'arm64'), hosts('p1', 'p2')]]);
  t.strictSame(decision.excludedNodes, ['p1', 'p2']);
  t.strictSame(decision.warnings, []);
  t.strictSame(rules, [
    {
      rule: 'pullable-nodes',
      message: 'app: credential group able can pull it, poor cannot; excluded: p1; p2',
    },
  ]);
});

test('attack: a node imitates the beginning of the fingerprint of others, and says that it cannot pull', async (t) => {
  const [honest, liar] = [group('fingerprint-of-one', 'a1', 'amd64'), group('fingerprint-of-a-liar', 'x1')];
  const { decision } = decided({ app: { able: [honest], unable: [poor, liar] } });
  t.strictSame(decision.excludedNodes, ['p1', 'p2', 'x1']);
});

test('the reason is bounded for many images and groups', async (t) => {
  const images = Array.from(
    { length: 40 },
    (_, index) => `registry.example/${'team/'.repeat(30)}app-${index}`,
  );
  const known = Object.fromEntries(images.map((image) => [image, 'amd64']));
  const groups = Array.from({ length: 60 }, (_, index) => group(`group-${index}\n`, `p${index}`, 'amd64'));
  const pullability = Object.fromEntries(images.map((image) => [image, { able: [able], unable: groups }]));
  const { rules, decision } = decided(pullability, { images, known });
  t.equal(decision.excludedNodes.length, 60);
  const message = rules[0]?.message ?? '';
  t.ok(Buffer.byteLength(message) < 2048, `${message.length}`);
  t.notMatch(message, /\n/);
});

test('cases in which no node is excluded', async (t) => {
  const many = (count: number): NodeGroup =>
    group('poor', Array.from({ length: count }, (_, index) => `p${index}`).join(' '), 'amd64');
  const terms = (count: number): Partial<PodSpec> =>
    requiring(...Array.from({ length: count }, (_, index) => termOf(isIn('zone', `z${index}`))));
  const itself = /^the pod names its node itself/;
  const cases: Record<string, [why: RegExp, given?: Case, pullability?: Partial<Pullability>]> = {
    'no group can pull': [/^no nodes are known.*: app: no credential group can/, {}, { able: none }],
    'the nodeSelector names a node': [itself, { spec: { nodeSelector: { 'kubernetes.io/hostname': 'p1' } } }],
    'the nodes have no names': [/^the nodes are not known by name/, {}, { unable: [group('poor', '')] }],
    'invalid names of nodes': [
      /^the nodes are not known by name/,
      {},
      { unable: [group('poor', `${'x'.repeat(64)} -a`)] },
    ],
    'too many nodes': [/^251 nodes are too many to name/, {}, { unable: [many(251)] }],
    'too often': [/^250 nodes are too many to name/, { spec: terms(3) }, { unable: [many(250)] }],
  };
  const all = decided({ app: { able: [able], unable: [] } });
  t.strictSame([all.rules, all.decision.warnings], [[], []], 'every group can pull');
  const apart = decided(
    { app: { able: [able], unable: [poor] }, side: { able: [poor], unable: [able] } },
    { images: ['app', 'side'] },
  );
  t.strictSame(apart.decision.excludedNodes, [], 'each image only on other nodes');
  like(t, apart.rules, [{ rule: 'pullable-nodes-left-out', message: /^no nodes are known/ }]);
  for (const [what, [why, given, groups]] of Object.entries(cases)) {
    const pullability = { able: [able], unable: [poor], ...groups };
    const { decision, rules } = decided({ app: pullability, arm: pullability }, given);
    t.strictSame(decision.excludedNodes, [], what);
    like(t, rules, [{ rule: 'pullable-nodes-left-out', message: why }], what);
    const isWarned = decision.warnings.some((warning) =>
      warning.startsWith('archwright: no nodes are known'),
    );
    t.equal(isWarned, why.source.startsWith('^no nodes are known'), what);
    t.ok(Buffer.byteLength(rules[0]?.message ?? '') < 2048, what);
  }
  const most = decided({ app: { able: [able], unable: [many(250)] } }, { spec: terms(2) });
  t.equal(most.decision.excludedNodes.length, 250);
});
