/**
 * The switch from the Multiarch Tuning Operator, by the commands of docs/install/migrate.md, while pods are
 * created: none stays gated, and each runs where its image can. Of the operator (1.3.4) a test restates its
 * definitions, its gate on new pods, its affinity, and the order in which it leaves.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { guardedPatch } from '../../../src/kube/api/change.ts';
import { ignoring } from '../../../src/kube/api/errors.ts';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { archIn, termsOf } from '../../support/placement-input.ts';
import { until } from '../../support/until.ts';
import { runCommand } from '../helm/release.ts';
import { debianProgram } from '../programs/debian.ts';
import { kubernetesPrograms } from '../programs/kubernetes.ts';
import { tryPod } from './archwright/archwright.ts';
import { startArchwright } from './archwright/start.ts';
import { define, installDefinitions, openDefinition } from './control-plane/definitions.ts';
import { podOf, podPath, type PodNow } from './control-plane/pods.ts';
import { startCluster, type Cluster } from './harness.ts';

/** The operator takes some 100 ms for a pod, a busy machine more. */
const longestMs = 20_000;
const group = 'multiarch.openshift.io';
const gate = `${group}/scheduling-gate`;
const config = `/apis/${group}/v1beta1/clusterpodplacementconfigs/cluster`;

const weights = {
  plugins: { nodeAffinityScoring: { enabled: true, platforms: [{ architecture: 'arm64', weight: 80 }] } },
};
const namespaceSelector = {
  matchExpressions: [{ key: `${group}/exclude-pod-placement`, operator: 'DoesNotExist' }],
};
const batch = { ...weights, labelSelector: { matchLabels: { tier: 'batch' } }, priority: 7 };

/** The commands of the section, block by block. */
const page = readFileSync('docs/install/migrate.md', 'utf8');
const section = /\n## Multiarch Tuning Operator\n([^]*?)\n## /.exec(page)?.[1] ?? '';
const blocks = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, block = '']) => block);

async function runBlock({ directory, kubeconfig }: Cluster, block: string): Promise<void> {
  const { kubectl } = kubernetesPrograms(['kubectl']);
  const path = [dirname(kubectl), dirname(debianProgram('jq')), '/usr/bin', '/bin'].join(':');
  const env = { PATH: path, HOME: directory, KUBECONFIG: kubeconfig };
  const { code, text } = await runCommand('/bin/bash', ['-euo', 'pipefail', '-c', block], env);
  if (code !== 0) throw new Error(`exit code ${code}: ${text}\n${block}`);
}

const gateIndex = ({ spec }: Pod): number =>
  (spec.schedulingGates ?? []).findIndex(({ name }) => name === gate);

/** Its update of a pod: the architectures in each required term, and its gate is removed. */
function placing(pod: Pod, values: readonly string[]): readonly object[] {
  const nodeSelectorTerms = (termsOf(pod) ?? [{}]).map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), archIn(...values)],
  }));
  const requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms };
  const nodeAffinity = {
    ...pod.spec.affinity?.nodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution,
  };
  return [
    { op: 'add', path: '/spec/affinity', value: { ...pod.spec.affinity, nodeAffinity } },
    { op: 'remove', path: `/spec/schedulingGates/${gateIndex(pod)}` },
  ];
}

/** Installs and runs it, for the namespace `default`. @returns a function that follows the deletion of its configuration */
async function startOperator(
  t: Test,
  cluster: Cluster,
  architecturesOf: (image: string) => readonly string[],
): Promise<() => Promise<void>> {
  const kinds = [
    // The API server writes defaults into every object.
    ['ClusterPodPlacementConfig', 'Cluster', { fallbackArchitecture: { type: 'string', default: '' } }],
    ['PodPlacementConfig', 'Namespaced', { priority: { type: 'integer', default: 0 } }],
  ] as const;
  for (const [kind, scope, fields] of kinds)
    await define(cluster, openDefinition(group, 'v1beta1', kind, scope, fields));
  const apiVersion = `${group}/v1beta1`;
  const metadata = { name: 'cluster', finalizers: [`finalizers.${group}/pod-placement`] };
  const spec = { ...weights, namespaceSelector };
  await cluster.create({ apiVersion, kind: 'ClusterPodPlacementConfig', metadata, spec });
  await cluster.create({ apiVersion, kind: 'PodPlacementConfig', metadata: { name: 'batch' }, spec: batch });
  // A policy instead of its webhook.
  const applied = `Object.spec.schedulingGates{name: "${gate}"}`;
  const expression = `Object{spec: Object.spec{schedulingGates: [${applied}]}}`;
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
  const selector = { matchLabels: { 'kubernetes.io/metadata.name': 'default' } };
  await cluster.make('MutatingAdmissionPolicy', 'pod-placement', {
    spec: {
      reinvocationPolicy: 'Never',
      failurePolicy: 'Fail',
      matchConstraints: { namespaceSelector: selector, resourceRules: [rule] },
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
    },
  });
  const policyName = 'pod-placement';
  await cluster.make('MutatingAdmissionPolicyBinding', policyName, { spec: { policyName } });
  // The API server follows a policy some moments later.
  const untilGating = (wanted: boolean): Promise<void> =>
    until(async () => gateIndex(await tryPod(cluster)) >= 0 === wanted, `gates: ${wanted}`);
  await untilGating(true);

  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  pods.onChange(({ type, object: pod }) => {
    if (type === 'DELETED' || gateIndex(pod) < 0) return;
    const patch = guardedPatch(pod, placing(pod, architecturesOf(pod.spec.containers[0]?.image ?? '')));
    // After a conflict, the next change of the pod is seen.
    void ignoring(['not-found', 'conflict'], cluster.patch(podPath(pod.metadata?.name ?? ''), patch));
  });
  return async () => {
    await cluster.waitFor(config, (now) => now?.metadata?.deletionTimestamp !== undefined);
    const others = await cluster.list(`/apis/${group}/v1beta1/podplacementconfigs`);
    if (others.length > 0) throw new Error('it waits for the deletion of its PodPlacementConfigs');
    for (const kind of ['mutatingadmissionpolicybindings', 'mutatingadmissionpolicies'])
      await cluster.delete(`/apis/admissionregistration.k8s.io/v1/${kind}/${policyName}`);
    await untilGating(false);
    await pods.until('no pod has its gate', (now) => [...now.values()].every((pod) => gateIndex(pod) < 0));
    await cluster.merge(config, { metadata: { finalizers: null } });
  };
}

void t.test('a cluster changes from the Multiarch Tuning Operator to archwright', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 }, schedulerQps: 500 }, t);
  const platforms = new Map<string, readonly string[]>();
  const leave = await startOperator(t, cluster, (image) => platforms.get(image) ?? []);
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  const gates = new Set<string>();
  const createdAt = new Map<string, number>();
  const waited = new Map<string, number>();
  pods.onChange(({ object: { metadata, spec }, at }) => {
    for (const { name } of spec.schedulingGates ?? []) gates.add(name);
    const name = metadata?.name ?? '';
    const began = createdAt.get(name);
    if (spec.nodeName !== undefined && began !== undefined && !waited.has(name)) waited.set(name, at - began);
  });

  await installDefinitions(cluster);
  const started = await startArchwright(cluster, { settings: { 'on-unknown-image': 'gate' } });
  for (const architectures of [['amd64'], ['arm64'], ['amd64', 'arm64']])
    platforms.set(started.images.push(`app/${architectures.join('-')}`, architectures), architectures);
  const images = [...platforms.keys()];
  const enough = new AbortController();
  const creating = (async () => {
    for (; !enough.signal.aborted; await pause(50)) {
      const name = `app-${createdAt.size}`;
      const image = images[createdAt.size % images.length] ?? '';
      createdAt.set(name, performance.now());
      await cluster.create(podOf(name, image));
    }
  })();
  const more = async (about: string): Promise<void> => {
    const wanted = createdAt.size + 30;
    await pods.until(about, () => waited.size >= wanted, 60_000);
  };
  await more('with both programs');
  t.equal(blocks.length, 2, 'two blocks of commands');
  await runBlock(cluster, blocks[0] ?? '');
  const copied = await cluster.get<KubeObject & { readonly spec?: object }>(
    '/apis/arch.example/v1alpha1/namespaces/default/podplacementconfigs/batch',
  );
  t.strictSame(copied.spec, batch);
  await more('with both kinds of custom resources');

  const left = leave();
  await runBlock(cluster, blocks[1] ?? '');
  await left;
  await t.rejects(cluster.get(config), /404|not found/i);
  gates.clear();
  await more('with archwright alone');
  enough.abort();
  await creating;
  await pods.until('every pod runs', () => waited.size === createdAt.size, 60_000);

  t.notOk(gates.has(gate), 'no new pod has its gate');
  const slowest = `the slowest of ${waited.size} pods was scheduled after ${Math.max(...waited.values())} ms`;
  t.ok(Math.max(...waited.values()) < longestMs, slowest);
  t.comment(slowest);
  for (const { metadata, spec } of pods.objects.values()) {
    const possible = platforms.get(spec.containers[0]?.image ?? '') ?? [];
    if (createdAt.has(metadata?.name ?? ''))
      t.ok(possible.includes(spec.nodeName?.split('-')[0] ?? ''), `${metadata?.name} on ${spec.nodeName}`);
  }
});
