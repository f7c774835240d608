import { test } from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { patchGatedPod } from '../../../src/placement/patch/patch.ts';
import {
  type Known,
  archIn,
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
    t.equal(pod.metadata?.annotations?.[keys.summary], undefined);
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
