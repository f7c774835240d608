/** The example pods are admitted and scheduled as their comments say, with a real control plane. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { placementProblemsOf } from '../../../examples/demo/check.ts';
import { readExamples, type Example } from '../../../examples/demo/examples.ts';
import { expected } from '../../../examples/demo/expected.ts';
import { podIn } from '../../../examples/demo/knowledge.ts';
import { setUp } from '../../../examples/demo/setup.ts';
import { openWorkspace } from '../../../examples/demo/workspace.ts';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { multiArch } from '../../support/registry/content.ts';
import { startCluster, type Cluster } from '../cluster/harness.ts';
import { takesPods, type NodeObject } from '../cluster/control-plane/nodes.ts';
import { runningPod } from '../cluster/control-plane/pods.ts';
import { type Condition } from '../cluster/control-plane/watch.ts';
import { callWebhook } from './rendered.ts';

/** The zone of `own-affinity.yaml` is that of one node. */
const nodes = [
  { name: 'amd64-0', architecture: 'amd64', labels: { 'topology.kubernetes.io/zone': 'eu-1a' } },
  { name: 'arm64-0', architecture: 'arm64' },
  { name: 's390x-0', architecture: 's390x' },
];

/** Nodes of examples with more constraints than the required architectures. */
const only: Readonly<Record<string, readonly string[]>> = {
  'own-affinity.yaml': ['amd64-0'],
  'own-node-selector.yaml': ['arm64-0'],
  'preferred-label.yaml': ['arm64-0'],
  'preferred-weights.yaml': ['arm64-0'],
  'disabled.yaml': nodes.map(({ name }) => name),
};

void t.test('the example pods are placed as documented', async (t) => {
  const cluster = await startCluster({ nodes }, t);
  await cluster.createNamespace('shop');
  const workspace = await openWorkspace();
  t.teardown(() => workspace.close());
  const { registries, servers } = await setUp(workspace, cluster.kubeconfig);
  await callWebhook(
    cluster,
    { url: servers.webhook.url, ca: servers.webhookCa },
    'public.example/shop/web:1',
  );

  const examples = await readExamples();
  t.same(examples.map(({ file }) => file).sort(), Object.keys(expected).sort());
  for (const example of examples) {
    await t.test(example.file, async (t) => {
      for (const secret of example.secrets)
        await cluster.create({ apiVersion: 'v1', kind: 'Secret', ...secret });
      const { outcome, denied = [], required } = expected[example.file] ?? {};
      const object = example.request.object as KubeObject;
      if (outcome === 'denied') {
        const refusal = await cluster.create(object).then(() => '', String);
        for (const pattern of denied) t.match(refusal, pattern);
        return;
      }
      const made = await cluster.create(object);
      const { pod } = podIn({ ...example.request, object: made });
      t.same(placementProblemsOf(example, pod.spec), []);
      if (outcome === 'gated' || object.kind === 'Deployment') return;
      const places = only[example.file] ?? (required ?? []).map((architecture) => `${architecture}-0`);
      if (object.kind === 'DaemonSet') t.same(await nodesOfDaemonSet(cluster, places.length), places);
      else t.ok(places.includes(await nodeOf(cluster, example)), `runs on one of ${places.join(', ')}`);
    });
  }

  await t.test('the pods of deployment-no-common.yaml are denied', async (t) => {
    type Deployment = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };
    const failure = (now: Deployment | undefined): string =>
      now?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')?.message ?? '';
    const path = '/apis/apps/v1/namespaces/shop/deployments/impossible';
    const deployment = await cluster.waitFor<Deployment>(path, (now) => failure(now) !== '');
    t.match(failure(deployment), /arch\.example.* denied the request.*legacy\/billing:1.*amd64/);
  });

  await t.test('examples/kind/pod.yaml runs on the fake node of its preferred architecture', async (t) => {
    const both = multiArch(['linux/amd64', 'linux/arm64'], { label: 'nginx' });
    registries.mirror.server.push('library/nginx', '1.27', both, registries.mirror.serves);
    const fakeNodes = parseAllDocuments(readFileSync('examples/kind/fake-nodes.yaml', 'utf8'));
    for (const document of fakeNodes) await cluster.create(document.toJS() as object);
    // While only one of them takes pods, it gets them.
    for (const document of fakeNodes) {
      const { metadata } = document.toJS() as NodeObject;
      await cluster.waitFor<NodeObject>(`/api/v1/nodes/${metadata?.name}`, takesPods);
    }
    await cluster.create(parse(readFileSync('examples/kind/pod.yaml', 'utf8')) as object);
    t.equal((await runningPod(cluster, 'web')).spec.nodeName, 'fake-arm64');
  });
});

async function nodeOf(cluster: Cluster, { request }: Example): Promise<string> {
  const { name = '', namespace } = (request.object as KubeObject).metadata ?? {};
  return (await runningPod(cluster, name, namespace)).spec.nodeName ?? '';
}

/** The nodes of the DaemonSet's pods, when there are as many. */
async function nodesOfDaemonSet(cluster: Cluster, count: number): Promise<readonly string[]> {
  type Status = KubeObject & { readonly status?: { readonly numberReady?: number } };
  const path = '/apis/apps/v1/namespaces/shop/daemonsets/node-watch';
  await cluster.waitFor<Status>(path, (now) => now?.status?.numberReady === count);
  const query = { labelSelector: 'app=node-watch' };
  const pods = await cluster.list<Pod>('/api/v1/namespaces/shop/pods', query);
  return pods.map(({ spec }) => spec.nodeName ?? '').sort();
}
