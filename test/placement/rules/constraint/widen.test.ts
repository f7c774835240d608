/**
 * `constraints: widen`: a pod that names architectures may also run on others that all of its images have.
 */
import { test } from 'tap';
import type { ObjectMeta, PodSpec } from '../../../../src/kube/api/objects.ts';
import type { NodeClass } from '../../../../src/nodes/node-class.ts';
import { groupByClass } from '../../../../src/nodes/node-classes.ts';
import { decide } from '../../../../src/placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../../../../src/placement/decision.ts';
import { patchPod } from '../../../../src/placement/patch/patch.ts';
import { recordedIn } from '../../../../src/placement/record/read.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import {
  archIn,
  archLabel,
  betaArchLabel,
  expressionsOf,
  facts,
  failed,
  inputOf,
  isIn,
  notIn,
  onArch,
  outcomeOf,
  place,
  placePod,
  podOf,
  requiring,
  termOf,
  termsOf,
  type Known,
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const widen = { constraints: 'widen' } as const;
type Nodes = readonly Readonly<Record<string, Partial<NodeClass>>>[];

/** Nodes n0, n1, …, each with an architecture and known properties. */
function nodes(...all: Nodes) {
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
const not = (...values: string[]) => notIn(archLabel, ...values);
const onAmd = onArch('amd64');
const onArm = onArch('arm64');
const selecting = (nodeSelector: Record<string, string>): Partial<PodSpec> => ({ nodeSelector });
const termAmd = termOf(archIn('amd64'));
const labeled = (labels: Record<string, string>): ObjectMeta => ({ labels });

function reasonOf({ reasons }: PlacementDecision): string | undefined {
  return reasons.find(({ rule }) => rule.startsWith('constraint-'))?.message;
}

interface Widened {
  readonly images?: readonly string[];
  /** Terms with `+` for the required architectures. Default: these alone. */
  readonly terms?: readonly (readonly unknown[])[];
  /** The rest of the nodeSelector. Default: empty, if there was one. */
  readonly left?: Readonly<Record<string, string>>;
}

const amdTimes = (count: number) => Array.from({ length: count }, () => archIn('amd64'));

const widened: Readonly<Record<string, readonly [spec: Partial<PodSpec>, more?: Widened]>> = {
  'nodeSelector, both labels, beside another one': [
    selecting({ [archLabel]: 'arm64', [betaArchLabel]: 'arm64', zone: 'a' }),
    { left: { zone: 'a' } },
  ],
  'a term beside the operating system': [requiring(termOf(zone, archIn('amd64'))), { terms: [[zone, '+']] }],
  'as many expressions as a record holds': [requiring(termOf(...amdTimes(4)))],
  'exclusions stay': [
    requiring(termOf(archIn('amd64'), not('s390x'))),
    { images: ['b'], terms: [[not('s390x'), '+']] },
  ],
};

for (const [name, [spec, more = {}]] of Object.entries(widened)) {
  test(`widened: ${name}`, async (t) => {
    const { images = ['a'], terms = [['+']], left = {} } = more;
    const pod = podOf(images, spec);
    const input = inputOf(pod, known, widen);
    const { decision, pod: after, patch } = place(input);
    t.equal(outcomeOf(decision), 'placed amd64 arm64');
    t.match(reasonOf(decision), 'can run on amd64, arm64');
    like(t, decision.warnings, [
      /^archwright: the pod's own architecture \(.*\) is widened to .*, which all of its images have \(constraints: widen\)$/u,
    ]);
    const wanted = terms.map((list) => list.map((each) => (each === '+' ? archIn('amd64', 'arm64') : each)));
    t.strictSame(expressionsOf(after), wanted);
    t.strictSame(after.spec.nodeSelector, spec.nodeSelector && left);
    t.notOk(after.spec.schedulingGates);
    t.ok(
      patch.every(({ op }) => op !== 'remove'),
      'only additions, and replacements of existing values',
    );
    like(t, recordedIn({ ...input, pod: after }), {
      widened: decision.widened,
      architectures: ['amd64', 'arm64'],
    });
    t.strictSame(place({ ...input, pod: after }).patch, [], 'a second call changes nothing');

    const late = { ...input, pod: after, facts: () => failed('unavailable') };
    const undone = place(late).decision.own;
    t.equal(
      undone?.nodeSelector[archLabel] ?? undone?.nodeSelector[betaArchLabel],
      pod.spec.nodeSelector?.[archLabel] ?? pod.spec.nodeSelector?.[betaArchLabel],
    );
    t.match(reasonOf(place(late).decision), /are not known/u, 'a later unknown image restores the names');
  });
}

interface Kept {
  /** Default: the nodeSelector for amd64. */
  readonly spec?: Partial<PodSpec>;
  readonly images?: readonly string[];
  readonly policy?: Partial<Policy>;
  readonly metadata?: ObjectMeta;
  readonly more?: Partial<PlacementInput>;
}

const hard: Partial<Policy> = { preferenceMode: 'hard' };
const neverPulled = [
  { name: 'c', image: 'a' },
  { name: 'n', image: 'local', imagePullPolicy: 'Never' },
];
const lowNode = { amd64: { amd64Level: 2 } } as const;
const highNode = { amd64: { amd64Level: 3 } } as const;
const onNodes = (...all: Nodes): Kept => ({
  spec: onArm,
  images: ['v3'],
  more: { nodes: nodes({ arm64: {} }, ...all) },
});

const kept: Readonly<Record<string, readonly [given: Kept, reason: RegExp]>> = {
  'an unknown image': [{ images: ['a', 'late'] }, /late are not known/u],
  'an image that is never pulled': [{ spec: { ...onAmd, containers: neverPulled } }, /local are not known/u],
  'an invalid reference': [{ images: ['a', 'bad'] }, /bad are not known/u],
  'an image without another architecture': [{ images: ['a', 'legacy'] }, /no other architecture$/u],
  'images that lack the named architecture': [{ spec: onArch('s390x') }, /cannot run on what it names/u],
  'exclusions of the pod': [
    { spec: requiring(termOf(archIn('amd64'), not('arm64'))) },
    /arm64 is excluded by the pod/u,
  ],
  'a DaemonSet': [{ more: { template: 'DaemonSet' } }, /DaemonSet/u],
  'a RuntimeClass': [{ spec: { ...onAmd, runtimeClassName: 'gvisor' } }, /RuntimeClass/u],
  'a node by name': [
    { spec: selecting({ [archLabel]: 'amd64', 'kubernetes.io/hostname': 'n' }) },
    /names its node/u,
  ],
  'terms with different architectures': [
    { spec: requiring(termOf(archIn('amd64'), zone), termOf(archIn('arm64'))) },
    /differ/u,
  ],
  'more expressions than a record holds': [{ spec: requiring(termOf(...amdTimes(5))) }, /differ/u],
  'labels that contradict each other': [
    { spec: selecting({ [archLabel]: 'amd64', [betaArchLabel]: 'arm64' }) },
    /cannot run on/u,
  ],
  'a nodeSelector that contradicts the terms': [
    { spec: { ...onAmd, ...requiring(termOf(archIn('arm64'))) } },
    /cannot run on/u,
  ],
  'a label that pins the pod': [
    { policy: hard, metadata: labeled({ 'arch.example/preferred': 'amd64' }) },
    /label or annotation/u,
  ],
  'a label that names the architecture of its node': [
    { policy: { matchNodeLabels: [archLabel] }, metadata: labeled({ [archLabel]: 'amd64' }) },
    /label of the pod names/u,
  ],
  'a list under a hard preference': [
    { spec: requiring(termOf(archIn('amd64', 'arm64'))), images: ['b'], policy: hard },
    /preference pins/u,
  ],
  'a node of the architecture with too few known properties': [
    { ...onNodes({ amd64: {} }), images: ['v3', 'a'] },
    /not all nodes of amd64 are certain/u,
  ],
  'a node of the architecture that refuses an image': [
    onNodes(lowNode, highNode),
    /not all nodes of amd64 are certain/u,
  ],
};

for (const [name, [given, reason]] of Object.entries(kept)) {
  test(`kept: ${name}`, async (t) => {
    const { spec = onAmd, images = ['a'], policy, metadata, more } = given;
    const input = inputOf(podOf(images, spec, metadata), known, { ...widen, ...policy }, more);
    const { decision, pod } = place(input);
    t.match(reasonOf(decision), new RegExp(reason));
    t.notOk(decision.widened);
    const before = place({ ...input, policy: { ...input.policy, constraints: 'keep' } });
    t.strictSame(pod, before.pod, 'placed as under `keep`');
    t.strictSame(decision.warnings, before.decision.warnings);
  });
}

test('a widened pod excludes nodes with a lower CPU level by name: a label could exclude others that it named', async (t) => {
  const { more } = onNodes(lowNode, highNode);
  const { excludedNodes, amd64Level } = decide(inputOf(podOf(['v3'], onAmd), known, widen, more));
  t.strictSame([excludedNodes, amd64Level], [['n1'], undefined]);
});

test('a template of a workload gets a warning, and is not changed', async (t) => {
  const input = inputOf(podOf(['a'], onAmd), known, widen, { template: 'workload' });
  const decision = decide(input);
  like(t, decision.warnings, [/amd64\) is widened to amd64, arm64/u]);
  t.match(reasonOf(decision), /can run on amd64, arm64/u);
  t.strictSame(patchPod(input.pod, decision), []);
  const broken = { a: facts('amd64 arm64', { brokenOn: ['s390x'] }) };
  const pod = podOf(['a'], { ...onAmd, runtimeClassName: 'gvisor' });
  const { reasons } = decide(inputOf(pod, broken, widen, { template: 'workload' }));
  t.strictSame(
    reasons.map(({ rule }) => rule),
    ['workload-template', 'constraint-not-widened', 'exec-format-error'],
  );
});

test('an architecture that another webhook adds again wins', async (t) => {
  for (const spec of [onAmd, requiring(termAmd)]) {
    const first = placePod(['a'], known, widen, spec);
    const again = { ...first.pod, spec: { ...first.pod.spec, nodeSelector: { [archLabel]: 'amd64' } } };
    const second = place(inputOf(again, known, widen));
    t.match(reasonOf(second.decision), /another webhook/u);
    t.equal(second.decision.outcome, 'own-constraint');
    t.strictSame(second.pod.spec.nodeSelector, { [archLabel]: 'amd64' });
    t.equal(termsOf(second.pod), undefined);
    t.notOk(recordedIn(inputOf(second.pod, known, widen))?.widened);
  }
});

test('a forged record restores only names of architectures', async (t) => {
  const { pod } = placePod(['a'], known, widen, onAmd);
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
    {},
    { nodeSelector: { zone: 'a' } },
    { nodeSelector: { [archLabel]: 'a b' } },
    { expressions: [['zone', ['a']]] },
    { expressions: [[archLabel, []]] },
    { expressions: [[archLabel, ['a b']]] },
  ];
  for (const value of wrong) t.notOk(recordedIn(inputOf(forged(value)))?.widened, JSON.stringify(value));
  t.ok(recordedIn(inputOf(forged({ expressions: [[betaArchLabel, ['amd64']]] })))?.widened);
  const waiting = inputOf(forged({ nodeSelector: { [archLabel]: 'arm64' } }), known, widen, {
    waiting: true,
  });
  t.notOk(recordedIn(waiting)?.widened, 'a gated pod cannot be restored');
});
