/** `constraints: widen`: a pod that names architectures may also run on the others that all of its images have. */
import { test } from 'tap';
import type { NodeSelectorTerm, ObjectMeta, PodSpec } from '../../../src/kube/api/objects.ts';
import type { NodeClass } from '../../../src/nodes/node-class.ts';
import { groupByClass } from '../../../src/nodes/node-classes.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { recordedIn } from '../../../src/placement/record/read.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import {
  archIn,
  facts,
  failed,
  inputOf,
  isIn,
  outcomeOf,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
  type Known,
} from '../../support/placement-input.ts';

const arch = 'kubernetes.io/arch';
const beta = 'beta.kubernetes.io/arch';
const widen = { constraints: 'widen' } as const;
/** Nodes n0, n1, …, each an architecture with what is known of it. */
function nodes(...all: readonly Readonly<Record<string, Partial<NodeClass>>>[]) {
  const classified = all.flatMap(Object.entries<Partial<NodeClass>>).map(([architecture, more], index) => {
    const runtime = { name: 'containerd', version: '1.7.24' };
    const levels = more.amd64Level === undefined ? {} : { own: more.amd64Level };
    const name = `n${index}`;
    return { name, hostname: name, class: { os: 'linux', architecture, runtime, ...more }, levels };
  });
  return groupByClass(classified, new Map());
}

const known: Known = {
  bad: failed('invalid-reference'),
  v3: facts('amd64 arm64', { requiredLevel: 3 }),
  anything: '',
  a: 'amd64 arm64',
  b: 'amd64 arm64 s390x',
  legacy: 'amd64',
  late: failed('unavailable'),
};
const zone = isIn('zone', 'a');
const not = (...values: string[]) => ({ key: arch, operator: 'NotIn', values });
const pinned = { nodeSelector: { [arch]: 'amd64' } };
const terms = (...all: NodeSelectorTerm[]): Partial<PodSpec> => requiring(all);

function reasonOf({ reasons }: PlacementDecision): string | undefined {
  return reasons.find(({ rule }) => rule.startsWith('constraint-'))?.message;
}

interface Widened {
  readonly spec: Partial<PodSpec>;
  readonly images?: readonly string[];
  readonly policy?: Partial<Policy>;
  readonly metadata?: ObjectMeta;
  /** The required architectures. Default: amd64 arm64. */
  readonly to?: string;
  /** Terms with `+` for the required architectures. Default: these alone. */
  readonly terms?: readonly (readonly unknown[])[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

const widened: Readonly<Record<string, Widened>> = {
  nodeSelector: { spec: pinned, nodeSelector: {} },
  'nodeSelector, by the beta label': { spec: { nodeSelector: { [beta]: 'amd64' } }, nodeSelector: {} },
  'nodeSelector, both labels, beside another one': {
    spec: { nodeSelector: { [arch]: 'arm64', [beta]: 'arm64', zone: 'a' } },
    nodeSelector: { zone: 'a' },
  },
  'nodeSelector beside terms': {
    spec: { ...pinned, ...terms(termOf(zone)) },
    terms: [[zone, '+']],
    nodeSelector: {},
  },
  'nodeSelector and terms': {
    spec: { ...pinned, ...terms(termOf(archIn('amd64', 'arm64'), zone)) },
    images: ['b'],
    to: 'amd64 arm64 s390x',
    terms: [[zone, '+']],
    nodeSelector: {},
  },
  'a term': { spec: terms(termOf(archIn('amd64'))) },
  'a term beside the operating system': { spec: terms(termOf(zone, archIn('amd64'))), terms: [[zone, '+']] },
  'a term for each label, as old charts have': {
    spec: terms(termOf(isIn(beta, 'amd64')), termOf(archIn('amd64'))),
  },
  'terms for several zones': {
    spec: terms(termOf(archIn('amd64'), zone), termOf(isIn('zone', 'b'), archIn('amd64'))),
    terms: [
      [zone, '+'],
      [isIn('zone', 'b'), '+'],
    ],
  },
  'a list': { spec: terms(termOf(archIn('amd64', 'ppc64le'))), images: ['b'], to: 'amd64 arm64 s390x' },
  'what it excludes stays excluded': {
    spec: terms(termOf(archIn('amd64'), not('s390x'))),
    images: ['b'],
    terms: [[not('s390x'), '+']],
  },
  'by all of its images': { spec: pinned, images: ['a', 'b'], nodeSelector: {} },
  'within the schedulable architectures': {
    spec: pinned,
    images: ['b'],
    policy: { schedulableArchitectures: ['amd64', 's390x'] },
    to: 'amd64 s390x',
    nodeSelector: {},
  },
  'within the allowed architectures, and it keeps its own': {
    spec: pinned,
    images: ['b'],
    policy: { allowed: { architectures: ['s390x'], origin: 'PodPlacementConfig shop/web' } },
    to: 'amd64 s390x',
    nodeSelector: {},
  },
  'a hard preference of the policy is a weight': {
    spec: pinned,
    policy: { preferenceMode: 'hard', preference: { weights: { arm64: 100 }, origin: 'configuration' } },
    nodeSelector: {},
  },
  'a preferred label is a weight': {
    spec: pinned,
    metadata: { labels: { 'arch.example/preferred': 'arm64' } },
    nodeSelector: {},
  },
};

for (const [name, { spec, images = ['a'], policy, metadata, ...expected }] of Object.entries(widened)) {
  test(`widened: ${name}`, async (t) => {
    const pod = podOf(images, spec, metadata);
    const input = inputOf(pod, known, { ...widen, ...policy });
    const { decision, pod: after, patch } = place(input);
    const to = expected.to ?? 'amd64 arm64';
    t.equal(outcomeOf(decision), `placed ${to}`);
    t.match(reasonOf(decision), `can run on ${to.split(' ').join(', ')}`);
    t.match(decision.warnings, [
      /^archwright: the pod's own architecture \(.*\) is widened to .*, which all of its images have \(constraints: widen\)$/u,
    ]);
    const required = archIn(...to.split(' '));
    const wanted = (expected.terms ?? [['+']]).map((list) =>
      list.map((each) => (each === '+' ? required : each)),
    );
    t.strictSame(
      termsOf(after)?.map(({ matchExpressions }) => matchExpressions),
      wanted,
    );
    t.strictSame(after.spec.nodeSelector, expected.nodeSelector);
    t.notOk(after.spec.schedulingGates);
    t.ok(
      patch.every(({ op }) => op !== 'remove'),
      'only additions and replacements of what is there',
    );
    t.match(recordedIn({ ...input, pod: after }), {
      widened: decision.widened,
      architectures: to.split(' '),
    });
    t.strictSame(place({ ...input, pod: after }).patch, [], 'a second call changes nothing');

    const late = { ...input, pod: after, facts: () => failed('unavailable') };
    const undone = place(late).decision.own;
    t.equal(
      undone?.nodeSelector[arch] ?? undone?.nodeSelector[beta],
      pod.spec.nodeSelector?.[arch] ?? pod.spec.nodeSelector?.[beta],
    );
    t.match(
      reasonOf(place(late).decision),
      /are not known/u,
      'an image that is unknown by then puts the names back',
    );
  });
}

interface Kept {
  readonly spec?: Partial<PodSpec>;
  readonly images?: readonly string[];
  readonly policy?: Partial<Policy>;
  readonly metadata?: ObjectMeta;
  readonly more?: Partial<PlacementInput>;
  readonly why?: RegExp;
}

const hard: Partial<Policy> = { preferenceMode: 'hard' };
const kept: Readonly<Record<string, Kept>> = {
  'under keep': { policy: { constraints: 'keep' } },
  'a pod that waits behind the gate': { more: { waiting: true } },
  'an unknown image': { images: ['a', 'late'], why: /late are not known/u },
  'an image that no one has looked up': { images: ['a', 'new'], why: /new are not known/u },
  'an image that is never pulled': {
    spec: {
      ...pinned,
      containers: [
        { name: 'c', image: 'a' },
        { name: 'n', image: 'local', imagePullPolicy: 'Never' },
      ],
    },
    why: /local are not known/u,
  },
  'a reference that is none': { images: ['a', 'bad'], why: /bad are not known/u },
  'an image without another architecture': { images: ['a', 'legacy'], why: /no other architecture$/u },
  'no other architecture that the policy allows': {
    policy: { allowed: { architectures: ['amd64', 's390x'], origin: 'PodPlacementConfig shop/web' } },
    why: /arm64 is excluded/u,
  },
  'images that lack what it names': {
    spec: { nodeSelector: { [arch]: 's390x' } },
    why: /cannot run on what it names/u,
  },
  'images that constrain nothing': { images: ['anything'], why: /name no architecture/u },
  'its own exclusions': {
    spec: terms(termOf(archIn('amd64'), not('arm64'))),
    why: /arm64 is excluded by the pod/u,
  },
  'a DaemonSet': { more: { template: 'DaemonSet' }, why: /DaemonSet/u },
  'a RuntimeClass': { spec: { ...pinned, runtimeClassName: 'gvisor' }, why: /RuntimeClass/u },
  'a node by name': {
    spec: { nodeSelector: { [arch]: 'amd64', 'kubernetes.io/hostname': 'n' } },
    why: /names its node/u,
  },
  'a node in a term': {
    spec: terms({ ...termOf(archIn('amd64')), matchFields: [isIn('metadata.name', 'n')] }),
    why: /names its node/u,
  },
  'terms with different architectures': {
    spec: terms(termOf(archIn('amd64'), zone), termOf(archIn('arm64'))),
    why: /differ/u,
  },
  'a term without an architecture': { spec: terms(termOf(archIn('amd64')), termOf(zone)), why: /differ/u },
  'a term that matches nothing': { spec: terms(termOf(archIn('amd64')), {}), why: /differ/u },
  'labels that contradict each other': {
    spec: { nodeSelector: { [arch]: 'amd64', [beta]: 'arm64' } },
    why: /cannot run on/u,
  },
  'a pin by its label': {
    policy: hard,
    metadata: { labels: { 'arch.example/preferred': 'amd64' } },
    why: /label or annotation/u,
  },
  'a pin by its annotation': {
    policy: hard,
    metadata: { annotations: { 'arch.example/preferred-weights': 'amd64=1' } },
    why: /label or annotation/u,
  },
  'a label that names the architecture of its node': {
    policy: { matchNodeLabels: [arch] },
    metadata: { labels: { [arch]: 'amd64' } },
    why: /label of the pod names/u,
  },
  'a list under a hard preference': {
    spec: terms(termOf(archIn('amd64', 'arm64'))),
    images: ['b'],
    policy: hard,
    why: /preference pins/u,
  },
  'annotations without room for the record': {
    metadata: { annotations: { large: 'x'.repeat(240 * 1024) } },
    why: /no room/u,
  },
  'a node of the architecture that refuses an image': {
    spec: { nodeSelector: { [arch]: 'arm64' } },
    images: ['v3'],
    more: { nodes: nodes({ arm64: {} }, { amd64: { amd64Level: 2 } }, { amd64: { amd64Level: 3 } }) },
    why: /not all nodes of amd64 are certain/u,
  },
  'a node of the architecture of which too little is known': {
    spec: { nodeSelector: { [arch]: 'arm64' } },
    images: ['v3'],
    more: { nodes: nodes({ arm64: {} }, { amd64: {} }) },
    why: /not all nodes of amd64 are certain/u,
  },
};

for (const [name, { spec = pinned, images = ['a'], policy, metadata, more, why }] of Object.entries(kept)) {
  test(`kept: ${name}`, async (t) => {
    const input = inputOf(podOf(images, spec, metadata), known, { ...widen, ...policy }, more);
    const { decision, pod } = place(input);
    if (why) t.match(reasonOf(decision), why);
    else t.equal(reasonOf(decision), undefined);
    t.notOk(decision.widened);
    const before = place({ ...input, policy: { ...input.policy, constraints: 'keep' } });
    t.strictSame(pod, before.pod, 'placed as under keep');
    t.strictSame(decision.warnings, before.decision.warnings);
  });
}

test('to nodes that can run the images, and those that cannot are excluded as under keep', async (t) => {
  const able = place(
    inputOf(podOf(['v3'], { nodeSelector: { [arch]: 'arm64' } }), known, widen, {
      nodes: nodes({ arm64: {} }, { amd64: { amd64Level: 3 } }),
    }),
  );
  t.equal(outcomeOf(able.decision), 'placed amd64 arm64');
  const policy = {
    ...widen,
    architectures: { amd64: withLabels({ pool: 'x' }), arm64: withLabels({ pool: 'arm' }) },
  };
  const mixed = nodes({ arm64: {} }, { amd64: { amd64Level: 2 } }, { amd64: { amd64Level: 3 } });
  const { decision, pod } = place(inputOf(podOf(['v3'], pinned), known, policy, { nodes: mixed }));
  t.strictSame(
    decision.excludedNodes,
    ['n1'],
    'the node of a lower level, by name: a label could take away others',
  );
  t.equal(decision.amd64Level, undefined);
  const excluded = { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['n1'] };
  t.strictSame(
    termsOf(pod),
    [termOf(archIn('amd64'), excluded), termOf(archIn('arm64'), isIn('pool', 'arm'), excluded)],
    'labels of nodes are only required where the pod did not choose before',
  );
});

test('a template of a workload gets the warning, and stays as it is', async (t) => {
  const input = inputOf(podOf(['a'], pinned), known, widen, { template: 'workload' });
  const decision = decide(input);
  t.match(decision.warnings, [/amd64\) is widened to amd64, arm64/u]);
  t.match(reasonOf(decision), /can run on amd64, arm64/u);
  t.strictSame(patchPod(input.pod, decision), []);
});

test('another webhook that names the architecture again has the last word', async (t) => {
  for (const spec of [pinned, terms(termOf(archIn('amd64')))]) {
    const first = place(inputOf(podOf(['a'], spec), known, widen));
    const again = { ...first.pod, spec: { ...first.pod.spec, nodeSelector: { [arch]: 'amd64' } } };
    const second = place(inputOf(again, known, widen));
    t.match(reasonOf(second.decision), /another webhook/u);
    t.equal(second.decision.outcome, 'own-constraint');
    t.strictSame(second.pod.spec.nodeSelector, { [arch]: 'amd64' });
    t.equal(termsOf(second.pod), undefined);
    t.notOk(recordedIn(inputOf(second.pod, known, widen))?.widened);
  }
});

test('under keep, what was widened before is put back', async (t) => {
  for (const spec of [pinned, terms(termOf(zone, archIn('amd64')))] as Partial<PodSpec>[]) {
    const { pod } = place(inputOf(podOf(['a'], spec), known, widen));
    const back = place(inputOf(pod, known));
    t.equal(back.decision.outcome, 'own-constraint');
    t.strictSame(back.pod.spec.nodeSelector ?? {}, spec.nodeSelector ?? {});
    t.strictSame(termsOf(back.pod), spec.affinity && termsOf(podOf(['a'], spec)));
  }
});

test('a record that someone else wrote puts nothing back but names of architectures', async (t) => {
  const { pod } = place(inputOf(podOf(['a'], pinned), known, widen));
  const text = pod.metadata?.annotations?.['arch.example/decision'] ?? '';
  const forged = (value: unknown) => ({
    ...pod,
    metadata: {
      annotations: {
        'arch.example/decision': JSON.stringify({ ...(JSON.parse(text) as object), widened: value }),
      },
    },
  });
  const wrong: readonly unknown[] = [
    null,
    [],
    {},
    'amd64',
    { nodeSelector: [] },
    { nodeSelector: { zone: 'a' } },
    { nodeSelector: { [arch]: 'a b' } },
    { nodeSelector: { [arch]: 1 } },
    { expressions: [['zone', ['a']]] },
    { expressions: [[arch, []]] },
    { expressions: [[arch, ['a b']]] },
    { expressions: {} },
    { nodeSelector: { [arch]: 'amd64', zone: 'a' } },
  ];
  for (const value of wrong) t.notOk(recordedIn(inputOf(forged(value)))?.widened, JSON.stringify(value));
  t.ok(recordedIn(inputOf(forged({ expressions: [[beta, ['amd64']]] })))?.widened);
  const waiting = inputOf(forged({ nodeSelector: { [arch]: 'arm64' } }), known, widen, { waiting: true });
  t.notOk(recordedIn(waiting)?.widened, 'nothing can be put back into a pod that waits');
});
