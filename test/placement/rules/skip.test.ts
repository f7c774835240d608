import { test } from 'tap';
import type { ObjectMeta, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { skipReasons, type PlacementInput, type SkipReason } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { skipReasonOf } from '../../../src/placement/rules/skip.ts';
import { inputOf, place, podOf } from '../../support/placement-input.ts';

const daemonSetOwner = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  name: 'agent',
  uid: '1',
  controller: true,
};

function excluding(...excludedNamespaces: readonly string[]): PlacementInput['policy'] {
  return { ...inputOf(podOf(['a'])).policy, excludedNamespaces };
}

interface Case {
  readonly spec?: Partial<PodSpec>;
  readonly metadata?: ObjectMeta;
  readonly more?: Partial<PlacementInput>;
  readonly skip?: SkipReason;
}

const cases: Readonly<Record<string, Case>> = {
  'an ordinary pod': {},
  'a node name': { spec: { nodeName: 'n1' }, skip: 'node-name' },
  'an empty node name': { spec: { nodeName: '' } },
  'a mirror pod': {
    metadata: { annotations: { 'kubernetes.io/config.mirror': 'hash' } },
    skip: 'mirror-pod',
  },
  'a pod of a DaemonSet': { metadata: { ownerReferences: [daemonSetOwner] }, skip: 'daemonset-pod' },
  'a pod of a ReplicaSet': { metadata: { ownerReferences: [{ ...daemonSetOwner, kind: 'ReplicaSet' }] } },
  'an excluded namespace': { more: { namespace: 'kube-system' }, skip: 'excluded-namespace' },
  'a namespace with a like name': { more: { namespace: 'kube-system-2' } },
  'a namespace that a glob matches': {
    more: { namespace: 'kube-flannel', policy: excluding('kube-*', 'openshift-*') },
    skip: 'excluded-namespace',
  },
  'a namespace that a glob matches in its middle': {
    more: { namespace: 'my-kube-flannel', policy: excluding('kube-*') },
  },
  'no excluded namespace': { more: { namespace: 'kube-system', policy: excluding() } },
  'the label on the pod': {
    metadata: { labels: { 'arch.example/placement': 'disabled' } },
    skip: 'disabled-by-pod',
  },
  'the annotation on the pod': {
    metadata: { annotations: { 'arch.example/placement': 'disabled' } },
    skip: 'disabled-by-pod',
  },
  'another value of the label': { metadata: { labels: { 'arch.example/placement': 'enabled' } } },
  'the label on the namespace': {
    more: { namespaceLabels: { 'arch.example/placement': 'disabled' } },
    skip: 'disabled-by-namespace',
  },
  'another value on the namespace': { more: { namespaceLabels: { 'arch.example/placement': 'on' } } },
  'a nodeSelector on the control plane': {
    spec: { nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } },
    skip: 'control-plane',
  },
  'the old name of that role': {
    spec: { nodeSelector: { 'node-role.kubernetes.io/master': '' } },
    skip: 'control-plane',
  },
  'another role': { spec: { nodeSelector: { 'node-role.kubernetes.io/worker': '' } } },
  'Never throughout': {
    spec: { containers: [{ name: 'c', image: 'a', imagePullPolicy: 'Never' }] },
    skip: 'no-image',
  },
  'no image at all': { spec: { containers: [{ name: 'c' }] }, skip: 'no-image' },
  'Never for one of two': {
    spec: {
      containers: [
        { name: 'c', image: 'a', imagePullPolicy: 'Never' },
        { name: 'd', image: 'b' },
      ],
    },
  },
};

for (const [name, { spec, metadata, more, skip }] of Object.entries(cases)) {
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
      t.not(decision.reasons[0]?.message, '');
      t.strictSame(patchPod(pod, decision), []);
    }
  });
}

test('every skip reason has a case', async (t) => {
  t.strictSame(new Set(Object.values(cases).map(({ skip }) => skip ?? 'node-name')), new Set(skipReasons));
});

test('null metadata from a file is skipped correctly', async (t) => {
  const pod = {
    metadata: { labels: null, annotations: null, ownerReferences: null },
    spec: podOf(['a']).spec,
  };
  t.equal(skipReasonOf(inputOf(pod as unknown as Pod)), undefined);
  t.equal(skipReasonOf(inputOf({ spec: pod.spec })), undefined);
});

test('a skipped pod is not held by our gate, and keeps the gates of others', async (t) => {
  const gates = [{ name: 'x/y' }, { name: 'arch.example/scheduling-gate' }];
  const pod = podOf(['a'], { schedulingGates: gates }, { labels: { 'arch.example/placement': 'disabled' } });
  const { patch, pod: after } = place(inputOf(pod));
  t.strictSame(patch, [{ op: 'remove', path: '/spec/schedulingGates/1' }]);
  t.strictSame(after.spec.schedulingGates, [{ name: 'x/y' }]);
});
