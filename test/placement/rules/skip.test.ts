/** Skipped pods, and templates of workloads. */
import assert from 'node:assert/strict';
import { test } from 'tap';
import type { ObjectMeta, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { skipReasons, type PlacementInput, type SkipReason } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { uncheckedRecord } from '../../../src/placement/record/read.ts';
import { skipReasonOf } from '../../../src/placement/rules/skip.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { like } from '../../support/like.ts';
import {
  applied,
  failed,
  inputOf,
  isIn,
  podOf,
  requiring,
  type Known,
} from '../../support/placement-input.ts';

const ownedBy = (kind: string): Given => ({
  metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'agent', uid: '1', controller: true }] },
});

function excluding(...excludedNamespaces: readonly string[]): PlacementInput['policy'] {
  return { ...inputOf(podOf(['a'])).policy, excludedNamespaces };
}

interface Given {
  readonly spec?: Partial<PodSpec>;
  readonly metadata?: ObjectMeta;
  readonly more?: Partial<PlacementInput>;
}

const disabled = { 'arch.example/placement': 'disabled' };
const annotated = (annotations: Record<string, string>): Given => ({ metadata: { annotations } });
const labeled = (labels: Record<string, string>): Given => ({ metadata: { labels } });
const selecting = (label: string): Given => ({ spec: { nodeSelector: { [label]: '' } } });
const inNamespace = (namespace: string, ...excluded: string[]): Given => ({
  more: { namespace, ...(excluded.length > 0 && { policy: excluding(...excluded) }) },
});
const never = { name: 'c', image: 'a', imagePullPolicy: 'Never' };

const withTerms = (count: number, expressions = 1, field = 'matchExpressions'): Given => {
  const expression = { key: 'metadata.name', operator: 'In', values: ['n1'] };
  const term = { [field]: Array.from({ length: expressions }, () => expression) };
  const nodeSelectorTerms = Array.from({ length: count }, () => term);
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return { spec: { affinity: { nodeAffinity: required } } };
};

/** Without a reason: not skipped. */
const cases: Readonly<Record<string, readonly [given: Given, skip?: SkipReason]>> = {
  'an ordinary pod': [{}],
  'a node name': [{ spec: { nodeName: 'n1' } }, 'node-name'],
  'an empty node name': [{ spec: { nodeName: '' } }],
  'a mirror pod': [annotated({ 'kubernetes.io/config.mirror': 'hash' }), 'mirror-pod'],
  'a pod of a DaemonSet': [ownedBy('DaemonSet'), 'daemonset-pod'],
  'a pod of a ReplicaSet': [ownedBy('ReplicaSet')],
  'an excluded namespace': [inNamespace('kube-system'), 'excluded-namespace'],
  'a namespace with a similar name': [inNamespace('kube-system-2')],
  'a namespace that a glob matches': [
    inNamespace('kube-flannel', 'kube-*', 'openshift-*'),
    'excluded-namespace',
  ],
  'a namespace that a glob matches in its middle': [inNamespace('my-kube-flannel', 'kube-*')],
  'no excluded namespace': [{ more: { namespace: 'kube-system', policy: excluding() } }],
  'the label on the pod': [labeled(disabled), 'disabled-by-pod'],
  'the annotation on the pod': [annotated(disabled), 'disabled-by-pod'],
  'another value of the label': [labeled({ 'arch.example/placement': 'enabled' })],
  'the label on the namespace': [{ more: { namespaceLabels: disabled } }, 'disabled-by-namespace'],
  'another value on the namespace': [{ more: { namespaceLabels: { 'arch.example/placement': 'on' } } }],
  'a nodeSelector on the control plane': [
    selecting('node-role.kubernetes.io/control-plane'),
    'control-plane',
  ],
  'the old name of that role': [selecting('node-role.kubernetes.io/master'), 'control-plane'],
  'another role': [selecting('node-role.kubernetes.io/worker')],
  '500 required terms': [withTerms(500)],
  'more than 500 required terms': [withTerms(501), 'too-many-terms'],
  '10,000 values in required terms': [withTerms(500, 10)],
  'more than 10,000 values': [withTerms(100, 51), 'too-many-terms'],
  'more than 10,000 values in fields': [withTerms(1, 5001, 'matchFields'), 'too-many-terms'],
  'Never throughout': [{ spec: { containers: [never] } }, 'no-image'],
  'no image at all': [{ spec: { containers: [{ name: 'c' }] } }, 'no-image'],
  '`Never` for one of two images': [{ spec: { containers: [never, { name: 'd', image: 'b' }] } }],
};

for (const [name, [{ spec, metadata, more }, skip]] of Object.entries(cases)) {
  test(`skip: ${name}`, async (t) => {
    const pod = podOf(['a'], spec, metadata);
    const input = inputOf(pod, { a: 'amd64', b: 'amd64' }, {}, more);
    t.equal(skipReasonOf(input), skip);
    const decision = decide(input);
    t.equal(decision.skip, skip);
    if (skip === undefined) {
      t.not(decision.outcome, 'skipped');
    } else {
      t.equal(decision.outcome, 'skipped');
      t.equal(decision.reasons[0]?.rule, `skip-${skip}`);
      const warnings =
        skip === 'too-many-terms' ? [/^archwright: this pod is not placed: .*500 required/] : [];
      like(t, decision.warnings, warnings);
      t.equal(decision.warnings.length, warnings.length);
      t.not(decision.reasons[0]?.message, '');
      t.strictSame(patchPod(pod, decision), []);
    }
  });
}

test('every skip reason has a case', async (t) => {
  t.strictSame(new Set(Object.values(cases).map(([, skip]) => skip ?? 'node-name')), new Set(skipReasons));
});

test('a value that does not skip the pod, but is probably meant to', async (t) => {
  const key = 'arch.example/placement';
  const look = (metadata: ObjectMeta) => decide(inputOf(podOf(['a'], {}, metadata), { a: 'amd64' })).warnings;
  t.strictSame(look({ labels: { [key]: 'disable' } }), [
    'archwright: label arch.example/placement: disable has no effect; disabled skips the pod',
  ]);
  like(t, look({ annotations: { [key]: 'false' } }), [/^archwright: annotation .*: false has no effect/]);
  t.strictSame(look({ labels: { [key]: 'enabled' }, annotations: { [key]: '' } }), []);
});

test('null metadata from a file is skipped correctly', async (t) => {
  const pod = {
    metadata: { labels: null, annotations: null, ownerReferences: null },
    spec: podOf(['a']).spec,
  };
  t.equal(skipReasonOf(inputOf(pod as unknown as Pod)), undefined);
  t.equal(skipReasonOf(inputOf({ spec: pod.spec })), undefined);
});

const known: Known = { a: 'amd64 arm64', b: 'arm64', c: 'amd64', broken: failed('timeout') };

function daemonSet(pod: Pod, facts: Known = known, policy: Partial<Policy> = {}) {
  const decision = decide(inputOf(pod, facts, policy, { template: 'DaemonSet' }));
  const patch = patchPod(pod, decision, '/spec/template');
  const object = applied({ kind: 'DaemonSet', metadata: { name: 'd' }, spec: { template: pod } }, patch);
  return { decision, patch, template: object.spec.template };
}

test('the template of a DaemonSet gets the required architectures, under its own path', async (t) => {
  const policy: Partial<Policy> = { tolerations: [{ key: 'arch', operator: 'Equal' }] };
  const { decision, patch, template } = daemonSet({ spec: podOf(['b']).spec }, known, policy);
  t.equal(decision.outcome, 'placed');
  t.strictSame(decision.required, ['arm64']);
  t.ok(patch.every(({ path }) => path.startsWith('/spec/template/')));
  t.strictSame(template.spec.tolerations, [{ key: 'arch', operator: 'Equal', value: 'arm64' }]);
  t.match(JSON.stringify(template.spec.affinity), /"values":\["arm64"\]/u);
  t.strictSame(Object.keys(template.metadata?.annotations ?? {}), ['arch.example/decision']);
  t.strictSame(daemonSet(template, known, policy).patch, [], 'an update without a change');
});

test('a failing registry does not change a placed DaemonSet', async (t) => {
  const { template } = daemonSet(podOf(['a', 'b']));
  for (const later of [{}, { a: 'amd64 arm64' }, { b: failed('unavailable') }]) {
    const { decision, patch } = daemonSet(template, later);
    t.strictSame(decision.required, ['arm64']);
    t.equal(decision.outcome, 'placed');
    t.equal(decision.reasons[0]?.rule, 'unknown-image-recorded');
    t.equal(patch.filter(({ path }) => path.includes('/spec/template/spec')).length, 0, 'no new rollout');
  }
  const other = { ...template, spec: { ...template.spec, containers: [{ name: 'n', image: 'new' }] } };
  t.equal(daemonSet(other, {}).decision.required, undefined, 'other images have no earlier placement');
  t.strictSame(
    daemonSet(template, { a: 'amd64' }).decision.required,
    ['amd64'],
    'known facts that contradict it',
  );
});

test('an unknown image does not restrict a DaemonSet, and a later update corrects the template', async (t) => {
  const policy: Partial<Policy> = { onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' };
  const first = daemonSet(podOf(['x']), known, policy);
  t.equal(first.decision.outcome, 'allowed-unknown');
  t.equal(first.decision.required, undefined, 'no fallback, because it would stay');
  t.ok(uncheckedRecord(first.template).isProvisional);
  t.equal(first.template.spec.affinity, undefined);
  t.strictSame(daemonSet(first.template, known, policy).patch, [], 'still unknown');
  const corrected = daemonSet(first.template, { x: 'arm64' }, policy);
  t.strictSame(corrected.decision.required, ['arm64']);
  t.match(JSON.stringify(corrected.template.spec.affinity), /"values":\["arm64"\]/u);
  t.notOk(uncheckedRecord(corrected.template).isProvisional);

  const bound = daemonSet(podOf(['x', 'a']), known, policy);
  t.strictSame(bound.decision.required, ['amd64', 'arm64']);
  t.ok(uncheckedRecord(bound.template).isProvisional);
  t.strictSame(daemonSet(bound.template, {}, policy).patch, [], 'an outage');
  const same = daemonSet(bound.template, { ...known, x: 'arm64 amd64' }, policy);
  t.strictSame(same.patch, [], 'no pod restarts, because the bound was correct');
  const narrower = daemonSet(bound.template, { ...known, x: 'arm64' }, policy).template;
  t.match(JSON.stringify(narrower.spec.affinity), /"values":\["arm64"\]/u);
  const partly = daemonSet(podOf(['x', 'y', 'a']), known, policy).template;
  const later = daemonSet(partly, { ...known, x: 'arm64' }, policy).template;
  t.match(JSON.stringify(later.spec.affinity), /"values":\["arm64"\]/u);
  t.ok(uncheckedRecord(later).isProvisional, 'one image is still unknown');
});

test('a failing registry does not change a placed DaemonSet that is replaced without the additions', async (t) => {
  const anew = podOf(['a', 'b']);
  const { template } = daemonSet(anew);
  const update = (pod: Pod, before: Pod, facts: Known) => {
    const decision = decide(inputOf(pod, facts, {}, { template: 'DaemonSet', before }));
    return applied(pod, patchPod(pod, decision));
  };
  for (const later of [{}, { a: 'amd64 arm64' }, { b: failed('unavailable') }])
    t.strictSame(update(anew, template, later), template, 'the same template');
  t.strictSame(update(podOf(['a', 'new']), template, {}).spec, podOf(['a', 'new']).spec, 'other images');
  t.strictSame(update(anew, anew, {}).spec, anew.spec, 'without an earlier record');
  t.match(JSON.stringify(update(anew, template, { ...known, b: 'amd64' })), /"values":\["amd64"\]/u);
  const twice = { ...template, spec: { ...template.spec, containers: anew.spec.containers } };
  t.strictSame(update(twice, podOf(['x']), {}), template, "the template's own record takes precedence");
});

/** The warnings about the template of a workload, to which nothing is added. */
function look(pod: Pod, policy: Partial<Policy> = {}): readonly string[] {
  const nodeArchitecture = (node: string) => (node === 'graviton' ? 'arm64' : undefined);
  const decision = decide(inputOf(pod, known, policy, { template: 'workload', nodeArchitecture }));
  const { required, gate, warnings } = decision;
  assert.deepEqual([patchPod(pod, decision, '/spec/template'), required, gate], [[], undefined, false]);
  return warnings;
}

test('other workloads stay unchanged; the user who applies one gets the warnings about its pods', async (t) => {
  t.strictSame(look(podOf(['a', 'b'])), []);
  const unknown = look(podOf(['x', 'broken']), { onUnknownImage: 'deny' });
  like(t, unknown, [/^archwright: image broken: unavailable: /u], 'x is not inspected yet');
  like(t, look(podOf(['b', 'c'])), [/pods of this template cannot be placed: .*b has arm64; c has amd64/u]);
  like(t, look(podOf(['b', 'c', 'x'])), [/cannot be placed/u]);
  like(t, look(podOf(['b']), { schedulableArchitectures: ['amd64'] }), [/schedulable ones \(amd64\)/u]);
  const gates = [{ name: 'arch.example/scheduling-gate' }];
  t.strictSame(look(podOf(['a'], { schedulingGates: gates })), []);
  t.strictSame(look(podOf(['b', 'c'], {}, { labels: { 'arch.example/placement': 'disabled' } })), []);
  const prefers = (value: string): ObjectMeta => ({ labels: { 'arch.example/preferred': value } });
  like(t, look(podOf(['x'], {}, prefers('aarch64'))), [
    /unknown architecture aarch64; did you mean arm64\?$/u,
  ]);
  t.strictSame(look(podOf(['x'], {}, prefers('arm64'))), [], 'the images are unknown');
  like(t, look(podOf(['c'], {}, prefers('arm64'))), [/arm64 is ignored, the pod can only run on amd64/u]);
  const onArm = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
  like(t, look(podOf(['c'], onArm)), [/the pod allows arm64, but its images can only run on amd64/u]);
  t.strictSame(look(podOf(['b', 'x'], onArm)), []);
  const allowed = { architectures: ['amd64'], origin: 'PodPlacementConfig shop/web' };
  t.strictSame(look(podOf(['b'], onArm), { allowed }), [], 'its own constraint has precedence');
  like(t, look(podOf(['b'], {}), { allowed }), [/cannot be placed: no architecture of those .* allows/u]);
  const admitted = look(podOf(['b', 'c']), { onNoCommonArchitecture: 'allow' });
  like(t, admitted, [/^archwright: no architecture can run all images: b has arm64; c has amd64$/u]);
  like(t, look(podOf(['c'], requiring({ matchFields: [isIn('metadata.name', 'graviton')] }))), [
    /the pod chooses node graviton \(arm64\), but its images can only run on amd64/u,
  ]);
  like(t, look(podOf(['c'], { nodeName: 'graviton' })), [
    /image c cannot run here: it has amd64, the node is arm64/u,
  ]);
  t.strictSame(look(podOf(['b'], { nodeName: 'graviton' })), []);
  const disabled = { labels: { 'arch.example/placement': 'disabled' } };
  t.strictSame(look(podOf(['c'], { nodeName: 'graviton' }, disabled)), []);
});
