/** Node classes: which can run an image, and how the others are excluded. */
import { test } from 'tap';
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import { labeledLevels } from '../../../../src/nodes/amd64-level.ts';
import type { Amd64Level, NodeClass } from '../../../../src/nodes/node-class.ts';
import { groupByClass, type NodeClasses } from '../../../../src/nodes/node-classes.ts';
import type { PlacementInput } from '../../../../src/placement/decision.ts';
import {
  archIn,
  defaultPolicy,
  facts,
  inputOf,
  isIn,
  outcomeOf,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  type Known,
} from '../../../support/placement-input.ts';
import { selects, type ModelNode } from '../../../support/scheduler-model.ts';
import { like } from '../../../support/like.ts';

const index = 'application/vnd.oci.image.index.v1+json';
const manifest = 'application/vnd.oci.image.manifest.v1+json';

interface Given extends Omit<NodeClass, 'os'> {
  readonly os?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const v1 = { name: 'containerd', version: '1.7.24' };
const v2 = { name: 'containerd', version: '2.1.4' };
const amd64: Given = { architecture: 'amd64' };
const arm: Given = { architecture: 'arm64', runtime: v1 };
const t4 = { ...amd64, runtime: v2, pullMode: 'transfer', amd64Level: 4 } as const;
const local = (amd64Level: Amd64Level): Given => ({ ...amd64, runtime: v1, amd64Level });
const nfdLabels = (level: number): Record<string, string> =>
  Object.fromEntries(
    [1, 2, 3, 4]
      .filter((each) => each <= level)
      .map((each) => [`feature.node.kubernetes.io/cpu-cpuid.X86_64_V${each}`, 'true']),
  );

const kinds = {
  amd64,
  local: { ...amd64, runtime: v1 },
  transfer: { ...amd64, runtime: v2, pullMode: 'transfer' },
  either: { ...amd64, runtime: v2 },
  newest: { ...arm, runtime: { name: 'containerd', version: '2.3.4' } },
  windows: { ...amd64, os: 'windows' },
  windows3: { ...amd64, os: 'windows', amd64Level: 3 },
  crio: { ...amd64, runtime: { name: 'cri-o', version: '1.34.1' } },
  win2019: { ...amd64, os: 'windows', runtime: v1, osVersion: '10.0.17763' },
  win2022: { ...amd64, os: 'windows', runtime: v1, osVersion: '10.0.20348' },
  arm,
  arm32: { ...arm, aarch32: true },
  arm64: { ...arm, aarch32: false },
  l1: local(1),
  l2: local(2),
  l3: local(3),
  l4: local(4),
  t4,
  nfd2: { ...local(2), labels: nfdLabels(2) },
  nfd3: { ...local(3), labels: nfdLabels(3) },
  nfd4: { ...local(4), labels: nfdLabels(4) },
  own2: { ...local(2), labels: { 'arch.example/amd64-level': 'v2' } },
  own3: { ...local(3), labels: { 'arch.example/amd64-level': 'v3' } },
  own4: { ...local(4), labels: { 'arch.example/amd64-level': 'v4' } },
  ownT4: { ...t4, labels: { 'arch.example/amd64-level': 'v4' } },
} as const satisfies Readonly<Record<string, Given>>;

/** Nodes of these kinds, named by their kind, with a number if it repeats. */
function cluster(text: string): { readonly nodes: readonly ModelNode[]; readonly classes?: NodeClasses } {
  if (text === '') return { nodes: [] };
  const made = text.split(' ').map((kind, at, all) => {
    const { os = 'linux', labels = {}, ...own }: Given = kinds[kind as keyof typeof kinds];
    const name = all.indexOf(kind) === at ? kind : `${kind}-${at}`;
    const marked = { 'kubernetes.io/arch': own.architecture, 'kubernetes.io/hostname': name, ...labels };
    const classified = { name, hostname: name, class: { os, ...own }, levels: labeledLevels(labels) };
    return { node: { name, labels: marked, taints: [] }, classified };
  });
  const classes = groupByClass(
    made.map(({ classified }) => classified),
    new Map(),
  );
  return { nodes: made.map(({ node }) => node), classes };
}

const known: Known = {
  plain: 'amd64 arm64',
  x86: '386',
  x86m: facts('386', { mediaType: manifest }),
  arm: 'linux/arm/v7',
  both: 'linux/arm/v7 arm64',
  x86arm: '386 linux/arm/v7',
  v3: 'linux/amd64/v3',
  v3m: facts('linux/amd64/v3', { mediaType: manifest }),
  v3arm: 'linux/amd64/v3 arm64',
  v3amd: 'linux/amd64/v3 amd64',
  needs3: facts('amd64 arm64', { requiredLevel: 3, mediaType: index }),
  only3: facts('amd64', { requiredLevel: 3, mediaType: index }),
  needs4: facts('amd64', { requiredLevel: 4, mediaType: index }),
  spelled: facts('', {
    platforms: [{ os: 'linux', architecture: 'amd64', written: 'x86_64' }],
    mediaType: index,
  }),
  unnamed: facts('', {
    platforms: ['arm64', 'amd64'].map((architecture) => ({ os: 'linux', architecture, unnamed: true })),
    mediaType: index,
  }),
  erofs: facts('', {
    platforms: [
      { os: 'linux', architecture: 'arm64', needsFeatures: true },
      { os: 'linux', architecture: 'amd64' },
    ],
    mediaType: index,
  }),
  win: facts('', {
    platforms: [{ os: 'windows', architecture: 'amd64', osVersion: '10.0.17763.5329' }],
    mediaType: index,
  }),
  broken: facts('386', { brokenOn: ['amd64'] }),
  override: facts('386', { source: 'override' }),
  override3: facts('linux/amd64 windows/amd64', { source: 'override', requiredLevel: 3 }),
};

function placed(
  nodes: string,
  images: string,
  more: Partial<PlacementInput> & { spec?: Partial<PodSpec> } = {},
) {
  const { spec = {}, policy = {}, ...rest } = more;
  const made = cluster(nodes);
  const input = inputOf(podOf(images.split(' '), spec), known, policy, {
    ...(made.classes && { nodes: made.classes }),
    ...rest,
  });
  const { pod, decision } = place(input);
  const lands = made.nodes.filter((node) => selects(pod.spec, node)).map(({ name }) => name);
  return { input, pod, decision, lands: lands.join(' '), outcome: outcomeOf(decision) };
}

/** Nodes, images, the decision as `outcomeOf` writes it, and the nodes on which the pod can land. */
const cases: readonly (readonly [nodes: string, images: string, outcome: string, lands?: string])[] = [
  ['transfer newest', 'erofs', 'placed amd64', 'transfer'],
  ['transfer arm', 'erofs', 'placed amd64 arm64', 'transfer arm'],
  ['local transfer arm', 'x86', 'placed 386 amd64', 'local'],
  ['local transfer', 'x86m', 'placed 386 amd64', 'local transfer'],
  ['windows arm', 'x86', 'placed 386', ''],
  ['', 'x86', 'placed 386 amd64'],
  ['local', 'broken', 'placed 386', ''],
  ['', 'v3', 'placed amd64'],
  ['l2 l3', 'v3m', 'placed amd64', 'l3'],
  ['l1 t4 l4', 'x86 needs4', 'placed amd64', 'l4'],
  ['', 'needs3', 'placed amd64 arm64'],
  ['local crio', 'spelled', 'placed amd64', 'local'],
  ['local transfer crio arm', 'unnamed', 'placed arm64', 'arm'],
  ['local transfer', 'override', 'placed 386', ''],
];

for (const [nodes, images, outcome, lands] of cases) {
  test(`${images} on nodes ${nodes || 'unknown'}`, async (t) => {
    const found = placed(nodes, images);
    t.equal(found.outcome, outcome);
    if (lands !== undefined) t.equal(found.lands, lands);
  });
}

test('a pod for Windows lands on nodes with the version of its image', async (t) => {
  const spec = { os: { name: 'windows' } };
  const found = placed('win2019 win2022', 'win', { spec });
  t.equal(found.outcome, 'placed amd64');
  t.equal(found.lands, 'win2019');
  t.equal(placed('win2022', 'win', { spec }).outcome, 'denied none');
  t.equal(placed('', 'win', { spec }).outcome, 'placed amd64');
});

test('nodes for Linux say nothing about an override of a pod for Windows', async (t) => {
  const spec = { os: { name: 'windows' } };
  t.equal(placed('l1 windows3', 'override3', { spec }).outcome, 'placed amd64');
  t.equal(placed('l3 windows3', 'override3').outcome, 'placed amd64');
  t.equal(placed('l1 windows3', 'override3').outcome, 'denied none');
});

test('architectures without a node count if they are schedulable', async (t) => {
  const policy = { ...defaultPolicy, schedulableArchitectures: ['amd64', 'arm64'] };
  t.equal(placed('arm', 'x86', { policy }).outcome, 'placed amd64');
});

test('a label for the CPU level is required if it distinguishes the nodes', async (t) => {
  const nfd3 = isIn('feature.node.kubernetes.io/cpu-cpuid.X86_64_V3', 'true');
  const own3 = isIn('arch.example/amd64-level', 'v3', 'v4');
  const hosts = (...names: string[]) => ({ ...isIn('kubernetes.io/hostname', ...names), operator: 'NotIn' });
  const expected: readonly (readonly [nodes: string, image: string, lands: string, terms: unknown])[] = [
    ['nfd2 nfd3 nfd4', 'only3', 'nfd3 nfd4', [[archIn('amd64'), nfd3]]],
    ['nfd2 nfd3 nfd4', 'v3m', 'nfd3 nfd4', [[archIn('amd64'), nfd3]]],
    ['own2 own3 own4 arm', 'needs3', 'own3 own4 arm', [[archIn('amd64'), own3], [archIn('arm64')]]],
    ['nfd2 nfd3 l4', 'only3', 'nfd3 l4', [[archIn('amd64'), hosts('nfd2')]]],
    ['nfd3 nfd4', 'only3', 'nfd3 nfd4', [[archIn('amd64')]]],
    ['own2 own3 ownT4', 'only3 x86', 'own3', [[archIn('amd64'), own3, hosts('ownT4')]]],
  ];
  for (const [nodes, images, lands, terms] of expected) {
    const found = placed(nodes, images);
    t.equal(found.lands, lands, nodes);
    const written = termsOf(found.pod)?.map(({ matchExpressions }) => matchExpressions);
    t.strictSame(written, terms, nodes);
    t.strictSame(place({ ...found.input, pod: found.pod }).patch, [], 'a second call changes nothing');
  }
  const terms = requiring(termOf(archIn('amd64')), termOf({ ...isIn('zone', 'c'), operator: 'NotIn' }));
  t.equal(
    placed('own2 own3 arm', 'needs3', { spec: terms }).lands,
    'own3 arm',
    'no label for a term of its own',
  );
});

test('too many nodes to name are not excluded, with a warning', async (t) => {
  const many = ['local', ...Array.from({ length: 251 }, () => 'transfer')].join(' ');
  const { decision, outcome } = placed(many, 'x86');
  t.equal(outcome, 'placed 386 amd64');
  t.strictSame(decision.excludedNodes, []);
  like(t, decision.warnings, [/can land where it cannot run: 251 nodes are too many to name: x86: /]);
});

test('reasons name dependencies on nodes, and causes of exclusions', async (t) => {
  const rules = (nodes: string, images: string, rule: string) =>
    placed(nodes, images)
      .decision.reasons.filter((each) => each.rule === rule)
      .map(({ message }) => message);
  t.strictSame(rules('either', 'x86', 'depends-on-node'), ['x86 on amd64: pull mode']);
  t.strictSame(rules('amd64', 'x86', 'depends-on-node'), ['x86 on amd64: runtime']);
  t.strictSame(rules('arm', 'arm', 'depends-on-node'), ['arm on arm64: AArch32']);
  t.strictSame(rules('', 'x86', 'depends-on-node'), ['x86 on amd64: runtime'], 'no node is known');
  t.strictSame(rules('local', 'needs3', 'depends-on-node'), ['needs3 on amd64: CPU level']);
  t.strictSame(rules('local transfer', 'plain', 'depends-on-node'), []);
  like(t, rules('local transfer', 'x86', 'node-classes'), [
    /^x86: containerd \(transfer pull\) .*; excluded: transfer$/,
  ]);
  like(t, rules('own2 own3', 'needs3', 'node-classes'), [/; required: arch.example\/amd64-level$/]);
  const named = { spec: { nodeSelector: { 'kubernetes.io/hostname': 'transfer' } } };
  like(t, placed('local transfer', 'x86', named).decision.reasons.at(-1), { rule: 'node-classes-left-out' });
  for (const nodes of ['l1 l2', 'l1']) {
    const { message } = placed(nodes, 'needs4').decision;
    t.match(message, /needs4 runs on no node \(amd64 not: the node's CPU does not run linux\/amd64/);
  }
});
