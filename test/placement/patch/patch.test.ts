/** Patches of admissions. */
import { readFileSync } from 'node:fs';
import { test } from 'tap';
import type { ObjectMeta, Pod } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import type { Operation } from '../../../src/placement/decision.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { like } from '../../support/like.ts';
import {
  archIn,
  failed,
  inputOf,
  notIn,
  onArch,
  place,
  podOf,
  termOf,
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
  const gates = [{ name: 'arch.example/scheduling-gate' }];
  const first = place(inputOf(podOf(['b'], { schedulingGates: gates }), { b: 'amd64' }, hard));
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
