import { test } from 'tap';
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import { matchedNodeLabels } from '../../../../src/placement/rules/nodes/labels.ts';
import { decide } from '../../../../src/placement/decide.ts';
import { recordedIn } from '../../../../src/placement/record/read.ts';
import {
  defaultPolicy,
  inputOf,
  isIn,
  type Known,
  outcomeOf,
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
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const rules = (labels: Record<string, string>) => withLabels(labels);

test('matched labels of a pod are required of its node', async (t) => {
  const policy = {
    ...defaultPolicy,
    matchNodeLabels: ['rack', 'row', 'empty', 'bad', 'none', 'constructor'],
  };
  const labels = { rack: 'r1', row: '2', empty: '', bad: 'a b', none: null as unknown as string, other: 'x' };
  t.strictSame(matchedNodeLabels(policy, labels), { rack: 'r1', row: '2', empty: '' });
  t.strictSame(matchedNodeLabels(policy, undefined), {});
  t.strictSame(matchedNodeLabels(policy, null), {});
  t.strictSame(matchedNodeLabels(defaultPolicy, labels), {});
});

interface More {
  readonly known?: Known;
  readonly policy?: Partial<Policy>;
  readonly spec?: Partial<PodSpec>;
  readonly message?: RegExp;
}
type Case = readonly [labels: Readonly<Record<string, string>>, decided: string, more?: More];

const arm = { [archLabel]: 'arm64' };
const s390x = { [archLabel]: 's390x' };

const cases: Readonly<Record<string, Case>> = {
  'by the beta label': [{ [betaArchLabel]: 'arm64' }, 'placed arm64'],
  'images that lack the architecture': [
    s390x,
    'denied none',
    { message: /of the pod's labels \(kubernetes.io\/arch=s390x\) can run all images: a has amd64, arm64/u },
  ],
  'images that lack the architecture, under `allow`': [
    s390x,
    'unconstrained',
    { policy: { onNoCommonArchitecture: 'allow' }, message: /can run all images/u },
  ],
  'two different labels': [{ ...arm, [betaArchLabel]: 'amd64' }, 'denied none'],
  'a value that is not an architecture': [{ [archLabel]: '' }, 'denied none', { known: { a: '' } }],
  'the same constraint of the pod': [arm, 'own-constraint', { spec: onArch('arm64') }],
  'a contradicting constraint of the pod': [
    arm,
    'own-constraint',
    {
      spec: onArch('amd64'),
      message: /the pod constrains amd64 itself, but its node must have kubernetes.io\/arch=arm64/u,
    },
  ],
};

for (const [name, [labels, decided, more = {}]] of Object.entries(cases)) {
  test(`a label that names an architecture: ${name}`, async (t) => {
    const { known = { a: 'amd64 arm64' }, policy, spec, message } = more;
    const matching = { matchNodeLabels: [archLabel, betaArchLabel], ...policy };
    const input = inputOf(podOf(['a'], spec, { labels }), known, matching);
    const { decision, pod } = place(input);
    t.equal(outcomeOf(decision), decided);
    t.strictSame(decision.preferred, []);
    const template = decide({ ...input, template: 'workload' });
    if (message) like(t, [decision.message, ...decision.warnings].join(), message);
    t.equal(template.warnings.length > 0, decided.startsWith('denied') || message !== undefined);
    if (decision.outcome === 'denied') return;
    t.strictSame(place({ ...input, pod }).patch, []);
    const required = termsOf(pod)?.[0]?.matchExpressions?.filter(({ key }) => key === archLabel);
    if (archLabel in labels) t.strictSame(required, [archIn(labels[archLabel] ?? '')], 'named once');
  });
}

const expressions = (key: string, operator: string, ...values: string[]) =>
  requiring({ matchExpressions: [{ key, operator, values }] });

for (const [name, spec, isLeftOut] of [
  ['nodes without the label', expressions('rack', 'DoesNotExist'), true],
  ['nodes with the label', expressions('rack', 'Exists'), false],
  ['another value in the nodeSelector', { nodeSelector: { rack: 'r2' } }, true],
  ['a number below', expressions('rack', 'Lt', '5'), true],
  [
    'another value in one of two terms',
    requiring(termOf(isIn('rack', 'r2')), termOf(isIn('row', '1'))),
    false,
  ],
] as const) {
  test(`a matched label beside the pod's own constraint: ${name}`, async (t) => {
    const labels = { rack: 'r1', row: '1' };
    const policy = { matchNodeLabels: ['rack'] };
    const input = inputOf(podOf(['a'], spec, { labels }), { a: 'arm64' }, policy);
    const { decision, pod } = place(input);
    const left = decision.reasons.filter(({ rule }) => rule === 'match-node-labels-left-out');
    t.equal(left.length, isLeftOut ? 1 : 0);
    t.strictSame(decision.nodeLabels, isLeftOut ? {} : { rack: 'r1' });
    like(t, decision.warnings, isLeftOut ? [/exclude nodes with rack=r1 \(matchNodeLabels\)/] : []);
    t.equal(decision.warnings.length, isLeftOut ? 1 : 0);
    t.strictSame(place({ ...input, pod }).patch, [], 'the same decision again');
  });
}

test('both kinds of labels have a reason', async (t) => {
  const policy = { matchNodeLabels: ['rack'], architectures: { arm64: rules({ pool: 'arm' }) } };
  const { reasons } = decide(inputOf(podOf(['a'], {}, { labels: { rack: 'r1' } }), { a: 'arm64' }, policy));
  like(t, reasons, [
    { rule: 'required-architectures' },
    { rule: 'require-node-labels', message: 'arm64: pool=arm' },
    { rule: 'match-node-labels', message: 'rack=r1' },
  ]);
  const without = decide(inputOf(podOf(['a']), { a: 'arm64' }, { architectures: { arm64: rules({}) } }));
  t.strictSame(without.nodeLabelsByArchitecture, {}, 'an architecture without labels');
});

test('a gated pod gets matched labels at once, unless its architectures are not known and it has no term', async (t) => {
  const zone = requiring(termOf(isIn('zone', 'a')));
  const rack = isIn('rack', 'r1');
  const gated = (images: readonly string[], spec: Partial<PodSpec> = {}) => {
    const policy = { matchNodeLabels: ['rack'] };
    const input = inputOf(podOf(images, spec, { labels: { rack: 'r1' } }), { a: 'arm64' }, policy);
    const { pod, decision } = place(input);
    t.ok(decision.gate);
    return [termsOf(pod), recordedIn({ ...input, pod })?.added.match];
  };
  t.strictSame(gated(['x']), [undefined, []]);
  t.strictSame(gated(['x'], zone), [[termOf(isIn('zone', 'a'), rack)], [rack]]);
  t.strictSame(gated(['x', 'a']), [[termOf(archIn('arm64'), rack)], [rack]]);
});
