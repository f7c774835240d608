import { test } from 'tap';
import type { NodeSelectorTerm, PodSpec, Toleration } from '../../../../src/kube/api/objects.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import {
  inputOf,
  isIn,
  type Known,
  notIn,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
  archIn,
  archLabel,
  betaArchLabel,
  onArch,
  placePod,
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const policy: Partial<Policy> = {
  tolerations: [{ key: 'arch', operator: 'Equal' }],
  matchNodeLabels: ['rack'],
  architectures: { arm64: withLabels({ pool: 'arm' }) },
  preferences: [{ weights: { arm64: 100 }, origin: 'configuration' }],
  preferenceMode: 'hard',
};
const rack = isIn('rack', 'r1');

const named = (...values: string[]): NodeSelectorTerm => termOf(archIn(...values));
const selecting = (nodeSelector: Record<string, string>): Partial<PodSpec> => ({ nodeSelector });
const onArm = onArch('arm64');

/** Architectures whose taint is tolerated. */
type Case = readonly [spec: Partial<PodSpec>, tolerated: string, known?: Known, warning?: RegExp];

const multi: Known = { a: 'amd64 arm64' };
const ofTwo = [
  { name: 'a', image: 'a' },
  { name: 'b', image: 'b' },
];

const cases: Readonly<Record<string, Case>> = {
  nodeSelector: [onArm, 'arm64'],
  'nodeSelector by the beta label': [selecting({ [betaArchLabel]: 'arm64' }), 'arm64'],
  'both labels, equal': [selecting({ [archLabel]: 'arm64', [betaArchLabel]: 'arm64' }), 'arm64'],
  'both labels, contradicting': [selecting({ [archLabel]: 'arm64', [betaArchLabel]: 'amd64' }), ''],
  'a value that is not an architecture': [onArch(''), ''],
  'a list without what its term excludes': [
    requiring(termOf(archIn('amd64', 'arm64'), notIn(archLabel, 'amd64'))),
    'arm64',
  ],
  'images that lack the architecture': [
    onArm,
    '',
    { a: 'amd64' },
    /the pod allows arm64, but its images can only run on amd64/u,
  ],
  'images that lack some of the architectures': [
    requiring(named('arm64'), named('amd64'), named('s390x')),
    'amd64 arm64',
    multi,
    /the pod allows s390x, but its images can only run on amd64, arm64/u,
  ],
  'images without a common architecture': [
    { ...onArm, containers: ofTwo },
    '',
    { a: 'amd64', b: 'arm64' },
    /no architecture can run all images: a has amd64; b has arm64/u,
  ],
};

for (const [name, [spec, tolerated, known = multi, warning]] of Object.entries(cases)) {
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
    if (warning) like(t, decision.warnings, [warning]);
    else t.strictSame(decision.warnings, []);
    t.strictSame(place({ ...input, pod: after }).patch, []);
  });
}

test('a long list of architectures in a pod is shortened in messages', async (t) => {
  const terms = Array.from({ length: 500 }, (_, index) => named(`arch${index}`));
  const { decision } = placePod(['a'], { a: 'amd64' }, policy, requiring(...terms));
  t.ok(decision.warnings.every((warning) => Buffer.byteLength(warning) <= 256));
  t.ok(decision.reasons.every(({ message }) => message.length < 1024));
});

test('a constraint that matches a node that cannot run the images leads to a warning', async (t) => {
  const zone = isIn('zone', 'a');
  const onNode = (node: string): NodeSelectorTerm => ({ matchFields: [isIn('metadata.name', node)] });
  const nodeArchitecture = (node: string) => ({ intel: 'amd64', graviton: 'arm64' })[node];
  const amd = { a: 'amd64' };
  const choosesArm = /chooses node graviton \(arm64\), .* run on amd64$/u;
  const allowsS390x = /: the pod allows s390x, but its images can only run on amd64, arm64$/u;
  const rows: [what: string, terms: NodeSelectorTerm[], known: Known, ...warnings: RegExp[]][] = [
    ['a pinned node', [onNode('graviton')], amd, choosesArm],
    ['a pinned node that fits', [onNode('intel')], amd],
    ['an unknown pinned node', [onNode('other')], amd],
    ['an unknown image', [onNode('graviton')], {}],
    ['one of two pinned nodes', [onNode('intel'), onNode('graviton')], amd, choosesArm],
    ['beside a free term', [termOf(zone), onNode('graviton')], amd, choosesArm],
    ['an architecture beside a free term', [named('s390x'), termOf(zone)], multi, allowsS390x],
    ['an architecture that fits, beside a free term', [named('amd64'), termOf(zone)], multi],
    ['an empty term matches no node', [{}, termOf(zone)], multi],
  ];
  for (const [what, terms, known, ...warnings] of rows) {
    const { decision } = place(inputOf(podOf(['a'], requiring(...terms)), known, {}, { nodeArchitecture }));
    t.equal(decision.warnings.length, warnings.length, what);
    like(t, decision.warnings, warnings, what);
  }
  const beside = requiring(named('amd64'), termOf(zone));
  const { reasons } = place(inputOf(podOf(['a'], beside), multi)).decision;
  like(t, reasons.at(-1), { rule: 'own-term-constraint', message: "1 of the pod's required terms" });
});
