/** Patches of gated pods, case by case. `gated-properties.test.ts` has properties of all. */
import t from 'tap';
import type { NodeSelectorTerm, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { patchGatedPod, ungatedPod } from '../../../src/placement/patch/patch.ts';
import { keys } from '../../../src/names/keys.ts';
import { recordedIn } from '../../../src/placement/record/read.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import {
  applied,
  inputOf,
  isIn,
  type Known,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
} from '../../support/placement-input.ts';
import { like } from '../../support/like.ts';

const gates = [{ name: 'x.example/first' }, { name: 'arch.example/scheduling-gate' }];
const known: Known = { both: 'amd64 arm64', arm: 'arm64', intel: 'amd64', many: 'amd64 arm64 s390x' };

const required = (...terms: NodeSelectorTerm[]): PodSpec['affinity'] => requiring(...terms).affinity;

function gatedPod(
  images: readonly string[],
  spec: Partial<PodSpec> = {},
  metadata: Pod['metadata'] = {},
): Pod {
  return podOf(images, { schedulingGates: gates, ...spec }, { resourceVersion: '41', ...metadata });
}

function decided(gated: Pod, policy: Partial<Policy> = {}) {
  const input = inputOf(gated, known, {
    onUnknownImage: 'fallback',
    onNoCommonArchitecture: 'pend',
    ...policy,
  });
  const decision = decide({ ...input, waiting: true });
  const patch = patchGatedPod(gated, decision);
  const pod = applied(gated, patch);
  t.strictSame(gatedUpdateFaults(gated, pod), []);
  return { decision, patch, pod };
}

void t.test(
  'the patch checks the resourceVersion, places the pod, removes only our gate and writes the record',
  async (t) => {
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
  },
);

void t.test('a skipped pod only loses the gate', async (t) => {
  const { patch, decision } = decided(
    gatedPod(['arm'], {}, { labels: { 'arch.example/placement': 'disabled' } }),
  );
  t.equal(decision.skip, 'disabled-by-pod');
  t.equal(patch.length, 2);
  const denied = decide(inputOf(gatedPod(['arm', 'intel']), known, { onNoCommonArchitecture: 'deny' }));
  t.equal(patchGatedPod(gatedPod(['arm', 'intel']), denied).length, 2, 'a gated pod cannot be denied');
});

void t.test('terms that cannot be multiplied get one group of architectures', async (t) => {
  const architectures = { arm64: withLabels({ pool: 'p' }), s390x: withLabels({ pool: 'q' }) };
  const zone = isIn('zone', 'a');
  const notIntel = { key: 'kubernetes.io/arch', operator: 'NotIn', values: ['amd64', 's390x'] };
  const affinity = required(termOf(zone), termOf(notIntel)) ?? {};
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

void t.test('the state label follows the decision; a pod without one gets none', async (t) => {
  const labeled = (images: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    gatedPod(images, {}, { labels: { [keys.placementState]: 'gated', ...more } });
  const label = '/metadata/labels/arch.example~1placement-state';
  t.strictSame(decided(labeled(['arm'])).patch.at(-1), { op: 'add', path: label, value: 'placed' });
  t.strictSame(ungatedPod(labeled(['arm'])).at(-1), { op: 'remove', path: label });
  const skipped = decided(labeled(['arm'], { 'arch.example/placement': 'disabled' }));
  t.strictSame(skipped.patch.at(-1), { op: 'remove', path: label });
  const unmet = decided(labeled(['arm', 'intel']), { onNoCommonArchitecture: 'allow' });
  like(t, unmet.patch.at(-1)?.path, label);
});
