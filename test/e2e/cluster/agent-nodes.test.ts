/** `agentNodes` on a real control plane: pools keep their labeled nodes, DaemonSets follow the label. */
import t from 'tap';
import { prepareArchwright, runArchwright, startController } from './archwright/archwright.ts';
import { startCluster } from './harness.ts';
import type { FakeNode, NodeObject } from './control-plane/nodes.ts';
import type { PodNow } from './control-plane/pods.ts';
import { leaderOf, shortLease } from './archwright/start.ts';
import { watch } from './control-plane/watch.ts';

const label = 'arch.example/agent';

function pool(name: string, key: string, count: number, architecture = 'amd64'): readonly FakeNode[] {
  return Array.from({ length: count }, (_, index) => {
    return { name: `${name}-${index}`, architecture, labels: { [key]: name } };
  });
}

/** Like the chart's DaemonSet, without the agent program. */
const daemonSet = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'agent' },
  spec: {
    selector: { matchLabels: { app: 'agent' } },
    template: {
      metadata: { labels: { app: 'agent' } },
      spec: {
        nodeSelector: { [label]: 'true' },
        tolerations: [{ operator: 'Exists' }],
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'agent', image: 'agent:1' }],
      },
    },
  },
};

t.test('each pool has agents on two nodes', async (t) => {
  const cluster = await startCluster({
    nodes: [
      ...pool('karpenter', 'karpenter.sh/nodepool', 4, 'arm64'),
      ...pool('eks', 'eks.amazonaws.com/nodegroup', 3),
      ...pool('single', 'cloud.google.com/gke-nodepool', 1),
      { name: 'master-0', architecture: 'amd64', labels: { 'node-role.kubernetes.io/control-plane': '' } },
      { name: 'plain-0', architecture: 'arm64', labels: { 'node.kubernetes.io/instance-type': 'm7g.large' } },
    ],
  });
  t.teardown(() => cluster.stop());
  const { client } = cluster;
  const tls = await prepareArchwright(cluster);
  await cluster.create(daemonSet);
  const [pods, nodes] = await Promise.all([
    watch<PodNow>(client, '/api/v1/pods'),
    watch<NodeObject>(client, '/api/v1/nodes'),
  ]);
  t.teardown(() => [pods, nodes].forEach((each) => each.close()));
  const isLabeled = ({ metadata }: NodeObject): boolean => metadata?.labels?.[label] === 'true';
  const labeled = (): readonly string[] =>
    [...nodes.objects.values()].filter(isLabeled).map(({ metadata }) => metadata?.name ?? '');
  const inPool = (name: string): readonly string[] => labeled().filter((node) => node.startsWith(`${name}-`));
  const counts = (...names: readonly string[]): string => names.map((name) => inPool(name).length).join();

  const controller = await startController(cluster, {
    tls,
    tuning: shortLease,
    settings: { 'agent-nodes': '2' },
  });
  const names = ['karpenter', 'eks', 'single', 'master', 'plain'];
  await nodes.until('two nodes of each pool', () => counts(...names) === '2,2,1,1,1', 60_000);
  await pods.until('an agent on each of them', (objects) => {
    const running = [...objects.values()].filter(({ status }) => status?.phase === 'Running');
    return (
      running.length === 7 &&
      running.every(({ spec }) => spec.nodeName !== undefined && labeled().includes(spec.nodeName))
    );
  });

  const [gone = '', cordoned = ''] = [inPool('karpenter')[0], inPool('eks')[0]];
  await cluster.delete(`/api/v1/nodes/${gone}`);
  await nodes.until(
    'a replacement of a node that left',
    () => counts('karpenter') === '2' && !labeled().includes(gone),
    120_000,
  );
  await cluster.merge(`/api/v1/nodes/${cordoned}`, { spec: { unschedulable: true } });
  await nodes.until('a replacement of a cordoned node', () => counts('eks') === '3', 120_000);

  await cluster.createNodes(pool('new', 'kubernetes.azure.com/agentpool', 3));
  await nodes.until('two nodes of a new pool', () => counts('new') === '2', 120_000);
  await nodes.until(
    'no label on the cordoned node',
    () => counts('eks') === '2' && !labeled().includes(cordoned),
    120_000,
  );
  t.equal(counts(...names), '2,2,1,1,1');

  await controller.process.stop();
  const args = ['clean', '--kubeconfig', cluster.kubeconfig, '--namespace', 'archwright'];
  t.match(await runArchwright(cluster, args), { code: 0 });
  await nodes.until('no label after clean', () => labeled().length === 0);

  await startController(cluster, { tls, name: 'next', tuning: shortLease, settings: { 'agent-nodes': '1' } });
  await leaderOf(client, (name) => name !== '').catch(() => undefined);
  await nodes.until('one node of each pool', () => counts(...names, 'new') === '1,1,1,1,1,1', 60_000);
});
