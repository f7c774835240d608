import { test } from 'tap';
import type { NodeSelectorTerm, PodSpec, Toleration } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import {
  failed,
  inputOf,
  isIn,
  type Known,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
} from '../../support/placement-input.ts';

const arch = 'kubernetes.io/arch';
const beta = 'beta.kubernetes.io/arch';
const policy: Partial<Policy> = {
  tolerations: [{ key: 'arch', operator: 'Equal' }],
  matchNodeLabels: ['rack'],
  architectures: { arm64: withLabels({ pool: 'arm' }) },
  preference: { weights: { arm64: 100 }, origin: 'configuration' },
  preferenceMode: 'hard',
};
const pin = isIn('metadata.name', 'n1');
const rack = isIn('rack', 'r1');

const required = (...terms: NodeSelectorTerm[]): Partial<PodSpec> => requiring(...terms);
const named = (key: string, ...values: string[]): NodeSelectorTerm => termOf(isIn(key, ...values));

interface Case {
  readonly spec: Partial<PodSpec>;
  readonly known?: Known;
  readonly tolerated?: string;
  readonly warning?: RegExp;
}

const multi: Known = { a: 'amd64 arm64' };

const cases: Readonly<Record<string, Case>> = {
  nodeSelector: { spec: { nodeSelector: { [arch]: 'arm64' } }, tolerated: 'arm64' },
  'nodeSelector by the beta label': { spec: { nodeSelector: { [beta]: 'arm64' } }, tolerated: 'arm64' },
  'both labels alike': { spec: { nodeSelector: { [arch]: 'arm64', [beta]: 'arm64' } }, tolerated: 'arm64' },
  'both labels, contradicting': { spec: { nodeSelector: { [arch]: 'arm64', [beta]: 'amd64' } } },
  'a value that is no architecture': { spec: { nodeSelector: { [arch]: '' } } },
  'every term': { spec: required(named(arch, 'arm64'), named(beta, 'amd64')), tolerated: 'amd64 arm64' },
  'every term that can match': { spec: required({}, named(arch, 'arm64')), tolerated: 'arm64' },
  'a term that contradicts itself': {
    spec: required(
      termOf(...(named(arch, 'arm64', 'amd64').matchExpressions ?? []), {
        key: arch,
        operator: 'NotIn',
        values: ['arm64'],
      }),
    ),
    tolerated: 'amd64',
  },
  'a pinned node': { spec: required({ matchFields: [pin] }), tolerated: 'amd64 arm64' },
  'a pinned node with its architecture': {
    spec: required({ matchFields: [pin], ...named(arch, 'arm64') }),
    tolerated: 'arm64',
  },
  'an unknown image waits for nothing': {
    spec: { nodeSelector: { [arch]: 'arm64' } },
    known: {},
    tolerated: 'arm64',
  },
  'a pinned node and an unknown image': {
    spec: required({ matchFields: [pin] }),
    known: { a: failed('unauthorized') },
  },
  'images that lack it': {
    spec: { nodeSelector: { [arch]: 'arm64' } },
    known: { a: 'amd64' },
    warning: /the pod allows arm64, but its images can only run on amd64/u,
  },
  'images that lack a part of it': {
    spec: required(named(arch, 'arm64'), named(arch, 'amd64'), named(arch, 's390x')),
    tolerated: 'amd64 arm64',
    warning: /the pod allows s390x, but its images can only run on amd64, arm64/u,
  },
  'images that share nothing': {
    spec: {
      nodeSelector: { [arch]: 'arm64' },
      containers: [
        { name: 'a', image: 'a' },
        { name: 'b', image: 'b' },
      ],
    },
    known: { a: 'amd64', b: 'arm64' },
    warning: /no architecture can run all images: a has amd64; b has arm64/u,
  },
};

for (const [name, { spec, known = multi, tolerated = '', warning }] of Object.entries(cases)) {
  test(`own constraint: ${name}`, async (t) => {
    const pod = podOf(['a'], spec, { labels: { rack: 'r1' } });
    const input = inputOf(pod, known, policy);
    const { decision, pod: after } = place(input);
    t.equal(decision.outcome, 'own-constraint');
    t.equal(decision.required, undefined);
    t.equal(decision.gate, false);
    t.strictSame(decision.preferred, []);
    t.strictSame(after.spec.nodeSelector, pod.spec.nodeSelector, 'the nodeSelector is kept');
    const wanted: readonly Toleration[] = tolerated
      .split(' ')
      .filter(Boolean)
      .map((value) => ({ key: 'arch', operator: 'Equal', value }));
    t.strictSame(after.spec.tolerations ?? [], wanted);
    const terms = termsOf(after);
    const before = termsOf(pod);
    const expected = (before ?? [{ matchExpressions: [] }]).map((term) =>
      Object.keys(term).length === 0
        ? term
        : { ...term, matchExpressions: [...(term.matchExpressions ?? []), rack] },
    );
    t.strictSame(terms, expected, 'only matchNodeLabels is added');
    if (warning) t.match(decision.warnings, [warning]);
    else t.strictSame(decision.warnings, []);
    t.strictSame(place({ ...input, pod: after }).patch, []);
  });
}

test('a pod that is left as it is has no patch at all', async (t) => {
  t.strictSame(place(inputOf(podOf(['a'], { nodeSelector: { [arch]: 'amd64' } }), multi)).patch, []);
});

test('our gate is opened for a pod that constrains itself', async (t) => {
  const spec = {
    nodeSelector: { [arch]: 'amd64' },
    schedulingGates: [{ name: 'arch.example/scheduling-gate' }],
  };
  t.strictSame(place(inputOf(podOf(['a'], spec))).patch, [{ op: 'remove', path: '/spec/schedulingGates/0' }]);
});

test('a long list of architectures of a person stays readable', async (t) => {
  const terms = Array.from({ length: 500 }, (_, index) => named(arch, `arch${index}`));
  const { decision } = place(inputOf(podOf(['a'], required(...terms)), { a: 'amd64' }, policy));
  t.ok(decision.warnings.every((warning) => Buffer.byteLength(warning) <= 256));
  t.ok(decision.reasons.every(({ message }) => message.length < 1024));
});

test('a node that the images cannot run on, and that the pod itself lets in', async (t) => {
  const zone = isIn('zone', 'a');
  const pinned = (node: string): NodeSelectorTerm => ({ matchFields: [isIn('metadata.name', node)] });
  const nodeArchitecture = (node: string) =>
    new Map([
      ['intel', 'amd64'],
      ['graviton', 'arm64'],
    ]).get(node);
  const rows: [what: string, terms: NodeSelectorTerm[], known: Known, warnings: RegExp[]][] = [
    [
      'a pinned node',
      [pinned('graviton')],
      { a: 'amd64' },
      [/chooses node graviton \(arm64\), .* run on amd64$/u],
    ],
    ['a pinned node that fits', [pinned('intel')], { a: 'amd64' }, []],
    ['a pinned node that is not known', [pinned('other')], { a: 'amd64' }, []],
    ['an image that is not known', [pinned('graviton')], {}, []],
    [
      'one of two pinned nodes',
      [pinned('intel'), pinned('graviton')],
      { a: 'amd64' },
      [/chooses node graviton/u],
    ],
    ['beside a free term', [termOf(zone), pinned('graviton')], { a: 'amd64' }, [/chooses node graviton/u]],
    [
      'an architecture beside a free term',
      [named(arch, 's390x'), termOf(zone)],
      multi,
      [/a required term of the pod allows s390x, but its images can only run on amd64, arm64$/u],
    ],
    ['an architecture that fits, beside a free term', [named(arch, 'amd64'), termOf(zone)], multi, []],
    ['an empty term matches no node', [{}, termOf(zone)], multi, []],
  ];
  for (const [what, terms, known, warnings] of rows) {
    const { decision } = place(inputOf(podOf(['a'], required(...terms)), known, {}, { nodeArchitecture }));
    t.equal(decision.warnings.length, warnings.length, what);
    t.match(decision.warnings, warnings, what);
  }
});
