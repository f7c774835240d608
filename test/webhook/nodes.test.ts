/** A webhook with nodes and their agents: pods land on the nodes that can pull and run their images. */
import { test, type Test } from 'tap';
import { connectCluster } from '../../src/cluster/cluster.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import type { Operation } from '../../src/placement/decision.ts';
import { denied, setup as setupFleet } from '../fleet/support.ts';
import type { Script } from '../fleet/support.ts';
import { connectedStore } from '../kube/support.ts';
import { recordingLog, silentLog } from '../support/captured.ts';
import { like } from '../support/like.ts';
import { applied, defaultPolicy } from '../support/placement-input.ts';
import { selects } from '../support/scheduler-model.ts';
import { until } from '../support/until.ts';
import { freshFacts, podOf, scripted, serve, workload } from './support.ts';

interface GivenNode {
  readonly architecture?: string;
  readonly runtime?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const index = 'application/vnd.oci.image.index.v1+json';
const images: Readonly<Record<string, ImageFacts>> = {
  x86: { ...freshFacts('x86', ['386']), mediaType: index },
  plain: { ...freshFacts('plain', ['amd64', 'arm64']), mediaType: index },
};

async function setup(t: Test, given: Readonly<Record<string, GivenNode>>, scripts: readonly Script[] = []) {
  const { store, client } = await connectedStore(t);
  const put = (name: string, { architecture = 'amd64', runtime = '', labels = {} }: GivenNode): void => {
    const own = { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': architecture };
    const nodeInfo = { architecture, operatingSystem: 'linux', containerRuntimeVersion: runtime };
    store.put(`/api/v1/nodes/${name}`, {
      metadata: { name, labels: { ...own, ...labels } },
      status: { nodeInfo },
    });
  };
  for (const [name, node] of Object.entries(given)) put(name, node);
  const cluster = connectCluster({ client, log: silentLog });
  t.teardown(() => cluster.close());
  const { fleet } = scripts.length === 0 ? { fleet: undefined } : await setupFleet(t, scripts);
  const served = await serve(t, { source: scripted(images), cluster, ...(fleet && { fleet }) });
  const lands = async (image: string): Promise<string> => {
    const { operations, allowed } = await served.admitPod([image]);
    const pod = applied(podOf([image]), (operations ?? []) as readonly Operation[]);
    const nodes = (
      store.list('/api/v1/nodes') as { metadata: { name: string; labels: Record<string, string> } }[]
    )
      .map(({ metadata: { name, labels } }) => ({ name, labels, taints: [] }))
      .filter((node) => allowed && selects(pod.spec, node));
    return nodes
      .map(({ name }) => name)
      .sort()
      .join(' ');
  };
  return { ...served, fleet, store, put, lands };
}

const old = { runtime: 'containerd://1.7.24' };
const recent = { runtime: 'containerd://2.1.4' };

test("agents report containerd's way to pull", async (t) => {
  const nodes = { forced: recent, usual: recent, silent: recent };
  const { lands, metric } = await setup(t, nodes, [
    { node: 'forced', report: { pullMode: 'local' } },
    { node: 'usual', report: { pullMode: 'transfer' } },
  ]);
  t.equal(await lands('x86'), 'forced silent');
  const unpullable = 'archwright_admission_unpullable_nodes_total{outcome="excluded"}';
  t.equal(await metric(unpullable), 0, 'the metric is about credentials');
  t.equal(await lands('plain'), 'forced silent usual');
});

test('new and changed nodes count for the next pod', async (t) => {
  const { lands, put } = await setup(t, { arm: { architecture: 'arm64' } });
  t.equal(await lands('x86'), '');
  put('old', old);
  await until(async () => (await lands('x86')) === 'old');
  put('recent', { runtime: 'cri-o://1.34.1' });
  await until(async () => (await lands('plain')) === 'arm old recent' && (await lands('x86')) === 'old');
});

test('a compromised agent can exclude only its own node', async (t) => {
  const refusing = { report: { pullMode: 'transfer' } } as const;
  const nodes = { good: recent, bad: recent };
  const lying = await setup(t, nodes, [
    { node: 'good', report: { pullMode: 'local' } },
    { node: 'bad', ...refusing },
  ]);
  t.equal(await lying.lands('x86'), 'good');
  const claiming = await setup(t, nodes, [
    { node: 'good', report: { pullMode: 'local' } },
    { node: 'good', ...refusing },
    { node: 'bad', report: { amd64Level: 4 } },
  ]);
  t.equal(await claiming.lands('x86'), 'bad good', 'contradicting reports for a node are ignored');
  const runtime = { name: 'cri-o', version: '1.36.3' };
  const misdetected = await setup(t, nodes, [{ node: 'bad', report: { runtime } }]);
  await until(async () => (await misdetected.lands('plain')) === 'bad good');
  t.equal(misdetected.fleet?.resolvesShortNames(), false, 'no kubelet uses CRI-O');
});

const image = 'registry.example/team/app:1';

async function pulling(t: Test, scripts: readonly Script[]) {
  const { fleet, agents } = await setupFleet(t, scripts);
  const cache = new FactsCache({ source: fleet, log: recordingLog().log });
  const policies = { policyOf: () => ({ ...defaultPolicy, requirePullableNodes: true }) };
  return { agents, ...(await serve(t, { cache, fleet, policies, level: 'debug' })) };
}

test('a pod with a private image excludes nodes that cannot pull it, a template does not', async (t) => {
  const { agents, admit, admitPod, metric, lines } = await pulling(t, [
    { fingerprint: 'poor', node: 'node-poor', architecture: 'amd64', facts: denied('unauthorized') },
    { fingerprint: 'able', node: 'node-able', architecture: 'amd64' },
  ]);
  const requestCounts = (): readonly number[] => agents.map(({ requests }) => requests.length);
  const template = await admit(
    workload('DaemonSet', { metadata: { name: 'd' }, spec: { template: { spec: podOf([image]).spec } } }),
  );
  t.strictSame(template.required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(template.operations), /hostname/);
  const { operations, warnings } = await admitPod([image]);
  t.match(
    JSON.stringify(operations),
    /"kubernetes.io\/hostname","operator":"NotIn","values":\["node-poor"\]/,
  );
  t.strictSame(warnings, []);
  const counts = requestCounts();
  t.strictSame((await admitPod([image])).operations, operations);
  t.strictSame(requestCounts(), counts, 'each group is asked once');
  t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="excluded"}'), 2);
  like(t, lines.at(-1), {
    msg: 'admission decided',
    namespace: 'shop',
    generateName: 'web-',
    excludedNodes: ['node-poor'],
  });
});

test('agents without node names exclude no node', async (t) => {
  const { admitPod, metric } = await pulling(t, [
    { fingerprint: 'able', node: 'node-able', architecture: 'amd64' },
    { fingerprint: 'poor', architecture: 'amd64', facts: denied('unauthorized') },
  ]);
  const { operations, required } = await admitPod([image]);
  t.strictSame(required, ['amd64', 'arm64']);
  t.notMatch(JSON.stringify(operations), /hostname/);
  t.equal(await metric('archwright_admission_unpullable_nodes_total{outcome="kept"}'), 1);
});
