import { test } from 'tap';
import type { ObjectMeta, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { skipReasons, type PlacementInput, type SkipReason } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { skipReasonOf } from '../../../src/placement/rules/skip.ts';
import { inputOf, podOf } from '../../support/placement-input.ts';
import { like } from '../../support/like.ts';

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
