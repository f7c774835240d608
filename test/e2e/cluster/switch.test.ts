/**
 * The switch from the Multiarch Tuning Operator, by the commands of docs/install/migrate.md, while pods are
 * created: none stays gated, and each runs where its image can.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { debianProgram } from '../programs/debian.ts';
import { kubernetesPrograms } from '../programs/kubernetes.ts';
import { runCommand } from '../helm/release.ts';
import { runArchwright } from './archwright/archwright.ts';
import { startArchwright } from './archwright/start.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { podOf, type PodNow } from './control-plane/pods.ts';
import { startCluster, type Cluster } from './harness.ts';
import { operatorConfig, operatorGate, startOperator } from './multiarch-tuning-operator/operator.ts';

/** The operator takes some 100 ms for a pod, a busy machine more. */
const longestMs = 20_000;

const weights = {
  plugins: { nodeAffinityScoring: { enabled: true, platforms: [{ architecture: 'arm64', weight: 80 }] } },
};
const configs = {
  cluster: {
    ...weights,
    namespaceSelector: {
      matchExpressions: [{ key: 'multiarch.openshift.io/exclude-pod-placement', operator: 'DoesNotExist' }],
    },
  },
  pods: { ...weights, labelSelector: { matchLabels: { tier: 'batch' } }, priority: 7 },
};

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

void t.test('a cluster changes from the Multiarch Tuning Operator to archwright', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 }, schedulerQps: 500 }, t);
  const platforms = new Map<string, readonly string[]>();
  const operator = await startOperator(t, cluster, (image) => platforms.get(image) ?? [], configs);
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
  const settings = { 'on-unknown-image': 'gate' };
  const images: string[] = [];
  let count = 0;
  const create = async (): Promise<void> => {
    const name = `app-${count}`;
    createdAt.set(name, performance.now());
    await cluster.create(podOf(name, images[count % images.length] ?? ''));
    count += 1;
  };
  const started = await startArchwright(cluster, { settings });
  for (const architectures of [['amd64'], ['arm64'], ['amd64', 'arm64']]) {
    const image = started.images.push(`app/${architectures.join('-')}`, architectures);
    platforms.set(image, architectures);
    images.push(image);
  }
  const enough = new AbortController();
  const creating = (async () => {
    for (; !enough.signal.aborted; await pause(50)) await create();
  })();
  const more = async (about: string): Promise<void> => {
    const wanted = count + 30;
    await pods.until(about, () => [...waited.keys()].length >= wanted, 60_000);
  };
  await more('with both programs');
  t.equal(blocks.length, 2, 'two blocks of commands');
  await runBlock(cluster, blocks[0] ?? '');
  const copied = await cluster.get<KubeObject & { readonly spec?: object }>(
    '/apis/arch.example/v1alpha1/namespaces/default/podplacementconfigs/batch',
  );
  t.strictSame(copied.spec, configs.pods);
  await more('with both kinds of custom resources');

  const left = operator.leave();
  await runBlock(cluster, blocks[1] ?? '');
  await left;
  await t.rejects(cluster.get(operatorConfig), /404|not found/i);
  gates.clear();
  await more('with archwright alone');
  enough.abort();
  await creating;
  await pods.until('every pod runs', () => waited.size === count, 60_000);

  t.notOk(gates.has(operatorGate), 'no new pod has its gate');
  const slowest = Math.max(...waited.values());
  t.ok(slowest < longestMs, `the slowest of ${count} pods was scheduled after ${Math.round(slowest)} ms`);
  t.comment(`the slowest of ${count} pods was scheduled after ${Math.round(slowest)} ms`);
  for (const { metadata, spec } of pods.objects.values()) {
    const possible = platforms.get(spec.containers[0]?.image ?? '') ?? [];
    if (createdAt.has(metadata?.name ?? ''))
      t.ok(possible.includes(spec.nodeName?.split('-')[0] ?? ''), `${metadata?.name} on ${spec.nodeName}`);
  }
});

void t.test('gates that the operator left behind are removed', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1 } }, t);
  const operator = await startOperator(t, cluster, () => ['amd64'], configs);
  await operator.stop();
  const { spec } = await cluster.create<PodNow>(podOf('left', 'example.com/app:1'));
  t.strictSame(spec.schedulingGates, [{ name: operatorGate }]);
  const args = ['clean', '--program=multiarch-tuning-operator', `--kubeconfig=${cluster.kubeconfig}`];
  const { code, output } = await runArchwright(cluster, args);
  t.equal(code, 0, output);
  const left = await cluster.get<PodNow>('/api/v1/namespaces/default/pods/left');
  t.strictSame(left.spec.schedulingGates ?? [], []);
});
