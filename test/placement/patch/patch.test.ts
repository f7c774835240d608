/** Patches of admissions and of gated pods. `gated-properties.test.ts` has properties of all of these. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'tap';
import type { ObjectMeta, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { Operation } from '../../../src/placement/decision.ts';
import { patchGatedPod, ungatedPod } from '../../../src/placement/patch/patch.ts';
import { recordedIn } from '../../../src/placement/record/read.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import { like } from '../../support/like.ts';
import {
  applied,
  archIn,
  failed,
  inputOf,
  isIn,
  notIn,
  onArch,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
  type Known,
} from '../../support/placement-input.ts';

const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
const arch = archIn('amd64');
const term = termOf(arch);
const weighted = { weight: 5, preference: term };
const toleration = { key: 'arch', operator: 'Equal', value: 'amd64' };
const soft: Partial<Policy> = {
  preferences: [{ weights: { amd64: 5 }, origin: 'configuration' }],
  preferenceMode: 'soft',
  tolerations: [{ key: 'arch', operator: 'Equal' }],
};
const hard: Partial<Policy> = {
  preferences: [{ weights: { amd64: 5 }, origin: 'configuration' }],
  preferenceMode: 'hard',
};

type Patch = readonly (readonly [op: string, path: string, value?: unknown])[];

const both = { [required]: { nodeSelectorTerms: [term] }, [preferred]: [weighted] };

const affinityWith = (nodeAffinity: object, more: object = {}): Patch[number] => [
  'add',
  '/spec/affinity',
  { ...more, nodeAffinity },
];
const whole: Patch = [affinityWith(both), ['add', '/spec/tolerations', [toleration]]];
const allNull = { affinity: null, tolerations: null, nodeSelector: null, schedulingGates: null };
const nullLists = { nodeAffinity: { [required]: null, [preferred]: null } };
const notOnN = { matchFields: [notIn('metadata.name', 'n')] };
const exists = { key: 'z', operator: 'Exists' };
const ownPreference = { weight: 1, preference: {} };
const itsOwn = {
  affinity: {
    nodeAffinity: {
      [required]: { nodeSelectorTerms: [termOf(exists), notOnN] },
      [preferred]: [ownPreference],
    },
  },
  tolerations: [toleration],
};

type Case = readonly [policy: Partial<Policy>, spec: object, patch: Patch];
const cases: Readonly<Record<string, Case>> = {
  'everything absent': [soft, {}, whole],
  'everything null': [soft, allNull, whole],
  'only pod affinity': [
    {},
    { affinity: { podAffinity: {} } },
    [affinityWith({ [required]: { nodeSelectorTerms: [term] } }, { podAffinity: {} })],
  ],
  'empty node affinity': [
    soft,
    { affinity: { nodeAffinity: {} }, tolerations: [] },
    [affinityWith(both), ['add', '/spec/tolerations/-', toleration]],
  ],
  'null lists in node affinity': [
    soft,
    { affinity: nullLists, tolerations: [{ key: 'x' }] },
    [affinityWith(both), ['add', '/spec/tolerations/-', toleration]],
  ],
  'its own terms and preferences': [
    soft,
    itsOwn,
    [
      affinityWith({
        [required]: { nodeSelectorTerms: [termOf(exists, arch), { ...notOnN, matchExpressions: [arch] }] },
        [preferred]: [ownPreference, weighted],
      }),
    ],
  ],
  'a pin beside other selectors': [
    hard,
    { nodeSelector: { zone: 'a' } },
    [['add', '/spec/nodeSelector', { zone: 'a', ...onArch('amd64').nodeSelector }]],
  ],
};

const annotation = '/metadata/annotations/arch.example~1decision';
const summary = '/metadata/annotations/arch.example~1summary';
const state = 'arch.example/placement-state';
const label = '/metadata/labels/arch.example~1placement-state';

for (const [name, [policy, spec, patch]] of Object.entries(cases)) {
  test(`patch: ${name}`, async (t) => {
    const pod = podOf(['b'], spec, { annotations: {}, labels: {} });
    const placed = place(inputOf(pod, { b: 'amd64' }, policy));
    const operations = placed.patch.map((operation) => Object.values(operation));
    t.strictSame(operations.slice(0, -3), patch);
    t.strictSame(
      placed.patch.slice(-3, -1).map(({ path }) => path),
      [annotation, summary],
      'then the record',
    );
    t.strictSame(operations.at(-1), ['add', label, 'placed']);
  });
}

const places: readonly (readonly [name: string, metadata: unknown, path: string])[] = [
  ['no metadata', undefined, '/metadata'],
  ['no annotations', {}, '/metadata/annotations'],
  ['null annotations', { annotations: null }, '/metadata/annotations'],
  ['other annotations', { annotations: { a: 'b' } }, annotation],
  ['an annotation of that name', { annotations: { 'arch.example/decision': 'x' } }, annotation],
  [
    'a null value',
    { annotations: { 'arch.example/decision': null, 'arch.example/summary': null } },
    annotation,
  ],
];

test('the annotation is added at the highest absent object', async (t) => {
  for (const [name, metadata, path] of places) {
    const bare = { spec: podOf(['b']).spec };
    const pod: Pod = metadata === undefined ? bare : { ...bare, metadata: metadata as ObjectMeta };
    const input = inputOf(pod, { b: 'amd64' });
    const placed = place(input);
    like(
      t,
      placed.patch.slice(-3, -1),
      [
        { op: 'add', path },
        { op: 'add', path: summary },
      ],
      name,
    );
    t.strictSame(placed.patch.at(-1), { op: 'add', path: '/metadata/labels', value: { [state]: 'placed' } });
    t.match(placed.pod.metadata?.annotations?.['arch.example/decision'], /^\{"v":1,/u, name);
    t.strictSame(place({ ...input, pod: placed.pod }).patch, [], name);
  }
});

test('an admission patch has no `test`, and removes only our annotations and label', async (t) => {
  const first = place(inputOf(podOf(['b'], { schedulingGates: gates.slice(1) }), { b: 'amd64' }, hard));
  const unmet: Partial<Policy> = {
    preferences: [{ weights: { s390x: 100 }, origin: 'test' }],
    preferenceMode: 'hard',
    schedulableArchitectures: ['amd64'],
  };
  const second = place(inputOf(first.pod, { b: '' }, unmet));
  const removed = (patch: readonly Operation[]): readonly string[] =>
    patch.flatMap(({ op, path }) => (op === 'add' || op === 'replace' ? [] : [`${op} ${path}`]));
  t.strictSame(removed(first.patch), []);
  t.strictSame(removed(second.patch), [`remove ${annotation}`, `remove ${summary}`, `remove ${label}`]);
  t.strictSame(second.pod.spec.nodeSelector, {});
});

test('the state label at admission', async (t) => {
  const { placementState } = keys;
  const copied = { [placementState]: 'gated' };
  const falling = { onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' } as const;
  const both = { a: 'amd64', b: 'arm64' };
  type Row = [about: string, known: Known, state: string | undefined, Partial<Policy>?, ObjectMeta?];
  const rows: Row[] = [
    ['known', { a: 'amd64' }, 'placed'],
    ['unknown', { a: failed('unavailable') }, 'gated'],
    ['unknown, with a fallback', { a: failed('unavailable') }, 'fallback', falling],
    ['no common architecture', both, 'pending', { onNoCommonArchitecture: 'pend' }],
    ['no addition', { a: '' }, undefined],
    ['a label that a person copied', { a: '' }, undefined, {}, { labels: copied }],
    ['beside others', { a: 'amd64' }, 'placed', {}, { labels: { app: 'a', ...copied } }],
  ];
  for (const [about, known, state, policy, metadata = {}] of rows) {
    const { pod } = place(inputOf(podOf(Object.keys(known), {}, metadata), known, policy));
    const { [placementState]: found, ...others } = pod.metadata?.labels ?? {};
    const { [placementState]: _, ...before } = metadata.labels ?? {};
    t.strictSame([found, others], [state, before], about);
  }
  t.match(
    readFileSync('charts/archwright/templates/ownrights.yaml', 'utf8'),
    "in ['gated', 'placed', 'fallback', 'pending']",
    'the values in the chart',
  );
});

test('templates get no label', async (t) => {
  const template = place({ ...inputOf(podOf(['a']), { a: 'amd64' }), template: 'DaemonSet' });
  t.ok(template.patch.length > 0);
  t.equal(template.pod.metadata?.labels, undefined);
});

const gates = [{ name: 'x.example/first' }, { name: 'arch.example/scheduling-gate' }];
const gatedKnown: Known = { both: 'amd64 arm64', arm: 'arm64', intel: 'amd64', many: 'amd64 arm64 s390x' };

function gatedPod(
  images: readonly string[],
  spec: Partial<PodSpec> = {},
  metadata: Pod['metadata'] = {},
): Pod {
  return podOf(images, { schedulingGates: gates, ...spec }, { resourceVersion: '41', ...metadata });
}

function decided(gated: Pod, policy: Partial<Policy> = {}) {
  const input = inputOf(gated, gatedKnown, {
    onUnknownImage: 'fallback',
    onNoCommonArchitecture: 'pend',
    ...policy,
  });
  const decision = decide({ ...input, waiting: true });
  const patch = patchGatedPod(gated, decision);
  const pod = applied(gated, patch);
  assert.deepEqual(gatedUpdateFaults(gated, pod), []);
  return { decision, patch, pod };
}

test('the patch checks the resourceVersion, places the pod, removes only our gate and writes the record', async (t) => {
  t.strictSame(
    decided(gatedPod(['arm'])).patch.map(({ op, path }) => `${op} ${path}`),
    [
      'replace /metadata/resourceVersion',
      'add /spec/affinity',
      'add /spec/schedulingGates',
      'add /metadata/annotations',
    ],
  );
  const guard = { op: 'replace', path: '/metadata/resourceVersion', value: '41' };
  t.strictSame(decided(gatedPod(['arm'])).patch[0], guard);
  t.strictSame(ungatedPod(gatedPod(['arm'])), [
    guard,
    { op: 'add', path: '/spec/schedulingGates', value: [gates[0]] },
  ]);
  t.strictSame(ungatedPod(podOf(['arm'])), [], 'no gate, no guard');
});

test('a skipped pod only loses the gate', async (t) => {
  const { patch, decision } = decided(
    gatedPod(['arm'], {}, { labels: { 'arch.example/placement': 'disabled' } }),
  );
  t.equal(decision.skip, 'disabled-by-pod');
  t.equal(patch.length, 2);
  const denied = decide(inputOf(gatedPod(['arm', 'intel']), gatedKnown, { onNoCommonArchitecture: 'deny' }));
  t.equal(patchGatedPod(gatedPod(['arm', 'intel']), denied).length, 2, 'a gated pod cannot be denied');
});

test('terms that cannot be multiplied get one group of architectures', async (t) => {
  const architectures = { arm64: withLabels({ pool: 'p' }), s390x: withLabels({ pool: 'q' }) };
  const zone = isIn('zone', 'a');
  const notIntel = { key: 'kubernetes.io/arch', operator: 'NotIn', values: ['amd64', 's390x'] };
  const affinity = requiring(termOf(zone), termOf(notIntel)).affinity ?? {};
  /** Architectures added to each term, and those of the record. */
  const chosen = (policy: Partial<Policy>): string => {
    const { pod } = decided(gatedPod(['many'], { affinity }), { architectures, ...policy });
    const added = termsOf(pod)?.map(({ matchExpressions = [] }) => matchExpressions[1]) ?? [];
    for (const expression of added) like(t, expression, { key: 'kubernetes.io/arch', operator: 'In' });
    const recorded = recordedIn(inputOf(pod, {}, { architectures }))?.architectures;
    return `${added.map((each) => each?.values?.join('|')).join(', ')}: ${recorded?.join(' ')}`;
  };
  t.equal(chosen({}), 'amd64, arm64: amd64 arm64', 'the first; a term that allows only one gets that one');
  const preferences = [{ weights: { s390x: 1 }, origin: 'configuration' }];
  t.equal(chosen({ preferences }), 's390x, arm64: arm64 s390x', 'the preferred one');
  const fewer = { architectures: { s390x: architectures.s390x } };
  t.equal(chosen(fewer), 'amd64|arm64, amd64|arm64: amd64 arm64', 'the group with the most architectures');
});

test('the state label follows the decision; a pod without one gets none', async (t) => {
  const labeled = (images: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    gatedPod(images, {}, { labels: { [keys.placementState]: 'gated', ...more } });
  t.strictSame(decided(labeled(['arm'])).patch.at(-1), { op: 'add', path: label, value: 'placed' });
  t.strictSame(ungatedPod(labeled(['arm'])).at(-1), { op: 'remove', path: label });
  const skipped = decided(labeled(['arm'], { 'arch.example/placement': 'disabled' }));
  t.strictSame(skipped.patch.at(-1), { op: 'remove', path: label });
  const unmet = decided(labeled(['arm', 'intel']), { onNoCommonArchitecture: 'allow' });
  like(t, unmet.patch.at(-1)?.path, label);
});
