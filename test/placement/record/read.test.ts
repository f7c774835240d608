import { test } from 'tap';
import type { Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { imagesKeyOf } from '../../../src/placement/record/write.ts';
import { recordedIn } from '../../../src/placement/record/read.ts';
import {
  archIn,
  inputOf,
  isIn,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
  placePod,
} from '../../support/placement-input.ts';
import { like } from '../../support/like.ts';

const key = 'arch.example/decision';
const policy: Partial<Policy> = {
  tolerations: [{ key: 'arch', operator: 'Equal', effect: 'NoSchedule' }],
  matchNodeLabels: ['rack'],
  architectures: { arm64: withLabels({ pool: 'arm' }) },
};
const known = { a: 'amd64 arm64', b: 'amd64' };

function withRecord(text: string, spec: Partial<PodSpec> = {}): Pod {
  return podOf(['a'], spec, { annotations: { [key]: text } });
}

function record(added: unknown, more: object = {}): string {
  return JSON.stringify({ v: 1, imagesKey: 'k', added, ...more });
}

function read(text: string): ReturnType<typeof recordedIn> {
  return recordedIn(inputOf(withRecord(text), {}, policy));
}

const unreadable: readonly (readonly [name: string, text: string])[] = [
  ['no JSON', '{"v":1'],
  ['null', 'null'],
  ['a list', '[]'],
  ['another version', record({}, { v: 2 })],
  ['a list of additions', record([])],
  ['no key of images', '{"v":1,"added":{}}'],
  ['invalid architectures', record({}, { architectures: ['a b'] })],
  ['an expression of three', record({ terms: [[['kubernetes.io/arch', ['amd64'], 'x']]] })],
  ['a preference for an invalid architecture', record({ preferred: [['a b', 1]] })],
  ['a toleration with seconds as text', record({ tolerations: [{ key: 'arch', tolerationSeconds: '1' }] })],
  ['a pin that is not an architecture', record({ pinned: 'a b' })],
  ['longer lists than any real record', record({ excludedNodes: Array(257).fill('n') })],
  ['more terms than architectures', record({ terms: Array.from({ length: 17 }, () => []) })],
  ['larger than any real record', record({}, { padding: 'x'.repeat(40_000) })],
];

test('an invalid record is ignored, and replaced', async (t) => {
  for (const [name, text] of unreadable) {
    t.equal(read(text), undefined, name);
    const input = inputOf(withRecord(text, { nodeSelector: { zone: 'a' } }), known, policy);
    const { pod } = place(input);
    like(t, JSON.parse(pod.metadata?.annotations?.[key] ?? ''), { v: 1, outcome: 'placed' }, name);
    t.strictSame(pod.spec.nodeSelector, { zone: 'a' }, name);
    t.strictSame(place({ ...input, pod }).patch, [], name);
  }
});

test('without seals, a record counts only for what the policy can add', async (t) => {
  const accepted = (...expression: readonly [string, string[]]): boolean =>
    read(record({ match: [expression] })) !== undefined &&
    read(record({ terms: [[expression]] })) !== undefined;
  t.ok(accepted('kubernetes.io/arch', ['amd64']), 'architectures');
  t.ok(accepted('rack', ['r1']), 'a matched label');
  t.ok(accepted('pool', ['arm']), 'a required label');
  t.notOk(accepted('pool', ['x86']), 'another value');
  t.ok(accepted('arch.example/amd64-level', ['v3', 'v4']), 'a level');
  t.ok(accepted('feature.node.kubernetes.io/cpu-cpuid.X86_64_V3', ['true']), 'a level by NFD');
  const forged = record({ match: [['tenant', ['b']]] });
  const required = withRecord(forged, requiring(termOf(isIn('zone', 'a'), isIn('tenant', 'b'))));
  t.strictSame(
    termsOf(place(inputOf(required, known)).pod),
    [termOf(isIn('zone', 'a'), isIn('tenant', 'b'), archIn('amd64', 'arm64'))],
    'what another webhook requires stays',
  );
});

test('an annotation that is not a record is removed, and nothing else', async (t) => {
  const spec = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
  t.strictSame(place(inputOf(withRecord('something else', spec), known)).patch, [
    { op: 'remove', path: '/metadata/annotations/arch.example~1decision' },
  ]);
});

test('our record is removed with its last addition', async (t) => {
  const first = placePod(['a'], known);
  const artifact = place(inputOf(first.pod, { a: '' }));
  t.strictSame(artifact.pod.metadata?.annotations, {});
  t.strictSame(artifact.pod.spec.affinity, { nodeAffinity: {} });
  t.strictSame(place(inputOf(artifact.pod, { a: '' })).patch, []);
});

test('a record has the excluded nodes apart', async (t) => {
  const terms = [[['kubernetes.io/arch', ['amd64']]]];
  const read = recordedIn(inputOf(withRecord(record({ terms, excludedNodes: ['a'] }))));
  const notIn = { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['a'] };
  t.strictSame(read?.added.terms, [[archIn('amd64'), notIn]]);
  t.strictSame(read?.added.match, [notIn]);
});

test('the rest of an edited addition counts as the pod’s own', async (t) => {
  const zone = isIn('zone', 'a');
  const arch = archIn('amd64');
  const terms = (...matchExpressions: (typeof zone)[]): Partial<PodSpec> => requiring({ matchExpressions });
  const { pod, decision } = place(inputOf(podOf(['b'], terms(zone)), known));
  const isReplaced = ({ reasons }: typeof decision) =>
    reasons.some(({ rule }) => rule === 'replaces-recorded');
  t.notOk(isReplaced(decision));
  t.ok(isReplaced(place(inputOf(pod, known)).decision));
  const edited = { ...pod, spec: { ...pod.spec, ...terms(arch) } };
  const after = place(inputOf(edited, { b: 'amd64 arm64' }));
  t.equal(after.decision.outcome, 'own-constraint');
  t.strictSame(after.pod.spec.affinity, edited.spec.affinity);
});

test('the annotation is small and has the decision', async (t) => {
  const { pod, decision } = placePod(['a', 'b', 'x', 'p'], { ...known, p: '' }, { onUnknownImage: 'allow' });
  t.strictSame(JSON.parse(pod.metadata?.annotations?.[key] ?? ''), {
    v: 1,
    outcome: 'allowed-unknown',
    architectures: ['amd64'],
    imagesKey: imagesKeyOf('linux', decision.images),
    added: { terms: [[['kubernetes.io/arch', ['amd64']]]], made: true },
    images: [
      ['a', 'amd64,arm64'],
      ['b', 'amd64'],
      ['x', 'unknown'],
      ['p', '*'],
    ],
  });
});

test('a record without an added term says nothing of terms', async (t) => {
  const { pod } = placePod(['p'], { p: '' }, { ownTaintKey: 'arch' });
  const { added } = JSON.parse(pod.metadata?.annotations?.[key] ?? '') as { added: unknown };
  t.strictSame(added, { tolerations: [{ key: 'arch', operator: 'Exists', effect: 'NoSchedule' }] });
});

test('details are truncated, additions are not', async (t) => {
  const images = Array.from(
    { length: 2000 },
    (_, index) => `registry.example/\u0000é${'x'.repeat(300)}/${index}:1`,
  );
  const input = inputOf(podOf(images), {}, policy, { facts: inputOf(podOf([]), { i: 'amd64' }).facts });
  const { pod } = place({ ...input, facts: () => input.facts('i') });
  const text = pod.metadata?.annotations?.[key] ?? '';
  t.ok(Buffer.byteLength(text) <= 4096);
  t.ok(Buffer.byteLength(text) > 3500, 'up to the limit');
  const content = JSON.parse(text) as { images: unknown[] };
  t.equal(content.images.length - 1 + Number(content.images.at(-1)), 2000, 'the number of the others');
  t.strictSame(place({ ...input, pod, facts: () => input.facts('i') }).patch, []);
});

test('sixteen long architectures with their tolerations still fit', async (t) => {
  const names = Array.from(
    { length: 16 },
    (_, index) => `${String(index).padStart(2, '0')}${'y'.repeat(61)}`,
  );
  const { pod } = placePod(['a'], { a: names.join(' ') }, { tolerations: policy.tolerations ?? [] });
  t.equal(pod.spec.tolerations?.length, 16);
  t.ok(Buffer.byteLength(pod.metadata?.annotations?.[key] ?? '') < 8192);
  t.strictSame(
    place(inputOf(pod, { a: names.join(' ') }, { tolerations: policy.tolerations ?? [] })).patch,
    [],
  );
});
