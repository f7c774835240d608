import { test } from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { keys } from '../../../src/names/keys.ts';
import { patchGatedPod, ungatedPod } from '../../../src/placement/patch/patch.ts';
import {
  type Known,
  applied,
  archIn,
  failed,
  inputOf,
  place,
  podOf,
  requiring,
  termOf,
} from '../../support/placement-input.ts';

/** apimachinery pkg/api/validation/objectmeta.go TotalAnnotationSizeLimitB */
const limit = 256 * 1024;
const key = 'other.example/large';
const known: Known = { app: 'amd64 arm64' };

function bytesOf({ metadata }: Pod): number {
  return Object.entries(metadata?.annotations ?? {})
    .flat()
    .reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** A pod whose annotations leave this number of bytes. */
function podWithRoom(bytes: number, images: readonly string[] = ['app'], letter = 'x'): Pod {
  const length = Math.floor((limit - bytes - key.length) / Buffer.byteLength(letter));
  return podOf(images, {}, { annotations: { [key]: letter.repeat(length) } });
}

function placed(pod: Pod) {
  return place(inputOf(pod, known));
}

function record({ metadata }: Pod): string | undefined {
  return metadata?.annotations?.[keys.decision];
}

const { affinity } = requiring(termOf(archIn('amd64', 'arm64')));

const first = placed(podOf(['app'])).pod;
const whole = record(first) ?? '';
/** With the summary. */
const wholeBytes = bytesOf(first);

test('the record is complete if it fits', async (t) => {
  t.match(whole, /"images":\[\["app","amd64,arm64"\]\]/u);
  const exact = placed(podWithRoom(wholeBytes)).pod;
  t.equal(record(exact), whole);
  t.equal(bytesOf(exact), limit);
});

test('annotations that are not strings are left to the API server', async (t) => {
  const annotations = { port: 8080, none: null } as unknown as Record<string, string>;
  t.equal(record(placed(podOf(['app'], {}, { annotations })).pod), whole);
});

test('if no record fits, the pod is placed without one', async (t) => {
  for (const [room, letter] of [
    [0, 'x'],
    [wholeBytes - 20, 'x'],
    [wholeBytes - 20, 'é'],
    [wholeBytes - 20, '☃'],
  ] as const) {
    const { pod } = placed(podWithRoom(room, ['app'], letter));
    t.equal(record(pod), undefined);
    t.equal(summaryIn(pod), undefined);
    t.ok(bytesOf(pod) <= limit);
    t.strictSame(pod.spec.affinity, affinity);
    t.strictSame(place(inputOf(pod, known)).patch, [], 'in a second call, additions count as the pod’s own');
  }
});

test('if no record fits, a gated pod gets no additions', async (t) => {
  const { pod, decision } = placed(podWithRoom(40, ['app', 'unknown']));
  t.equal(decision.outcome, 'gated');
  t.strictSame(pod.spec.schedulingGates, [{ name: keys.gate }]);
  t.equal(record(pod), undefined);
  t.equal(pod.spec.affinity, undefined);
  const later = place(inputOf(pod, { ...known, unknown: 'arm64' })).decision;
  t.equal(later.outcome, 'placed');
  t.strictSame(later.required, ['arm64'], 'both images count when they are known');
});

test('a record that no longer fits is removed, with its additions', async (t) => {
  const { pod } = placed(podOf(['app', 'unknown']));
  t.strictSame(pod.spec.affinity, affinity);
  const full = podWithRoom(keys.decision.length + whole.length - 100).metadata?.annotations;
  const grown = { ...pod, metadata: { annotations: { ...pod.metadata?.annotations, ...full } } };
  const again = placed(grown).pod;
  t.equal(record(again), undefined);
  t.strictSame(again.spec.schedulingGates, [{ name: keys.gate }]);
  t.notOk(again.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution);
});

test('a waiting pod can be placed without a record', async (t) => {
  const { pod } = placed(podOf(['app', 'unknown']));
  const { decision } = place(inputOf(pod, { ...known, unknown: 'arm64' }, {}, { waiting: true }));
  const paths = (withRecord: boolean): readonly string[] =>
    patchGatedPod(pod, decision, { withRecord }).map(({ op, path }) => `${op} ${path}`);
  const annotation = '/metadata/annotations/arch.example~1';
  t.ok(paths(true).includes(`add ${annotation}decision`));
  t.ok(paths(true).includes(`add ${annotation}summary`));
  t.strictSame(
    paths(false),
    paths(true).map((each) => each.replace(`add ${annotation}`, `remove ${annotation}`)),
  );
  const unrecorded = podOf(['app'], { schedulingGates: [{ name: keys.gate }] }, { annotations: {} });
  const plain = place(inputOf(unrecorded, known, {}, { waiting: true })).decision;
  t.notOk(
    patchGatedPod(unrecorded, plain, { withRecord: false }).some(({ path }) => path.includes('annotations')),
  );
});

const summaryIn = ({ metadata }: Pod): string | undefined => metadata?.annotations?.[keys.summary];

const prefersArm: Partial<Policy> = {
  preferences: [{ weights: { arm64: 100, amd64: 1 }, origin: 'the configuration' }],
};

const rows: readonly (readonly [known: Known, policy: Partial<Policy>, summary: string | undefined])[] = [
  [{ app: 'amd64 arm64', log: 'amd64 arm64' }, {}, 'placed, requires amd64, arm64: all images can run there'],
  [
    { app: 'amd64 arm64' },
    prefersArm,
    'placed, requires amd64, arm64: all images can run there; prefers arm64, amd64',
  ],
  [
    { app: 'amd64 arm64' },
    { ...prefersArm, preferenceMode: 'hard' },
    'placed, requires arm64: all images can run there; prefers arm64',
  ],
  [{ app: '' }, prefersArm, 'unconstrained: no image constrains the architecture; prefers arm64, amd64'],
  [
    { app: 'arm64', log: failed('unauthorized', 'dial 10.0.0.7:443: secret') },
    {},
    'gated, requires arm64: log: unauthorized: the registry requires a valid credential: a pull secret, or a credential or plugin of the nodes (kubeletConfig)',
  ],
  [
    { app: failed('not-found') },
    { onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' },
    'fallback, requires amd64: app: not-found: the registry has no such image; check the name and the tag',
  ],
  [
    { app: 'amd64', log: 'arm64' },
    { onNoCommonArchitecture: 'pend' },
    'pending: no architecture can run all images: app has amd64; log has arm64',
  ],
  // Without additions, no record.
  [{ app: '' }, {}, undefined],
];

test('the summary has the decision and its reason in one line', async (t) => {
  for (const [known, policy, summary] of rows) {
    const input = inputOf(podOf(Object.keys(known)), known, policy);
    const { pod } = place(input);
    t.equal(summaryIn(pod), summary);
    t.strictSame(place({ ...input, pod }).patch, [], 'a second call changes nothing');
  }
});

test('a typical summary has at most 140 characters with its key, so `kubectl describe` does not truncate it', async (t) => {
  const { pod } = place(inputOf(podOf(['a', 'b']), { a: 'amd64 arm64', b: 'amd64 arm64' }, prefersArm));
  t.ok(`${keys.summary}: ${summaryIn(pod)}`.length < 140);
});

test('it is bounded and printable, whatever the names of images', async (t) => {
  const images = Array.from({ length: 40 }, (_, index) => `é\u202e\n${index}/${'x'.repeat(300)}`);
  const summary = summaryIn(place(inputOf(podOf(images))).pod) ?? '';
  t.match(summary, /^gated: é\?\?0\/x+\.\.\.: not inspected yet; /u);
  t.ok(Buffer.byteLength(summary) <= 256);
});

test('a copied summary is replaced or removed; a template has none', async (t) => {
  const copied = { annotations: { [keys.summary]: 'gated: not true', other: 'x' } };
  const placed = place(inputOf(podOf(['a'], {}, copied), { a: 'arm64' })).pod;
  t.equal(summaryIn(placed), 'placed, requires arm64: all images can run there');
  for (const pod of [podOf(['a'], {}, copied), podOf(['a'], { nodeName: 'node-1' }, copied)])
    t.strictSame(place(inputOf(pod, { a: '' })).pod.metadata?.annotations, { other: 'x' });
  const template = place(inputOf(podOf(['a']), { a: 'arm64' }, {}, { template: 'DaemonSet' })).pod;
  t.strictSame(Object.keys(template.metadata?.annotations ?? {}), [keys.decision]);
});

test('it changes with the removal of the gate', async (t) => {
  const gated = place(inputOf(podOf(['a']))).pod;
  t.equal(summaryIn(gated), 'gated: a: not inspected yet');
  const waiting = (known: Known, policy: Partial<Policy> = {}): Pod => {
    const { decision } = place(inputOf(gated, known, policy, { waiting: true }));
    return applied(gated, patchGatedPod(gated, decision));
  };
  t.equal(summaryIn(waiting({ a: 'arm64' })), 'placed, requires arm64: all images can run there');
  t.equal(summaryIn(waiting({ a: '' })), 'unconstrained: no image constrains the architecture');
  t.match(summaryIn(waiting({}, { onUnknownImage: 'fallback' })), /^allowed-unknown: a: not inspected yet$/);
  t.equal(summaryIn(applied(gated, ungatedPod(gated))), undefined, 'the gate alone is removed');
  const bare: Pod = { ...gated, metadata: {} };
  const { decision } = place(inputOf(bare, { a: 'arm64' }, {}, { waiting: true }));
  t.equal(summaryIn(applied(bare, patchGatedPod(bare, decision))), undefined, 'a gate without our record');
});
