/** Which nodes an agent represents if only some nodes of a pool run one. */
import t from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { createNodeHostnames, pooledNode, type PooledNode } from '../../src/cluster/nodes.ts';
import { createPullableNodes } from '../../src/cluster/pullable-nodes.ts';
import { noPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { createRequestOf } from '../../src/images/image-request.ts';
import { defaultCacheTimes, factsOf } from '../support/facts.ts';
import { silentLog } from '../support/captured.ts';

const agent = { 'arch.example/agent': 'true' };
const node = (hostname: string, pool: string, labels = {}): PooledNode =>
  pooledNode({ 'kubernetes.io/hostname': hostname, 'karpenter.sh/nodepool': pool, ...labels });

function nodesOf(initial: Readonly<Record<string, PooledNode>>) {
  const nodes = new Map(Object.entries(initial));
  const listeners: (() => void)[] = [];
  return {
    get: (_: string, name: string) => nodes.get(name),
    values: () => nodes.values(),
    onChange: (listener: () => void) => void listeners.push(listener),
    put: (name: string, object: PooledNode) => {
      nodes.set(name, object);
      for (const listener of listeners) listener();
    },
  };
}

t.test('an agent represents the nodes of its pool that run none', async (t) => {
  const nodes = nodesOf({
    a1: node('host-a1', 'a', agent),
    a2: node('host-a2', 'a', agent),
    a3: node('host-a3', 'a'),
    b1: node('host-b1', 'b'),
    mute: pooledNode({ 'karpenter.sh/nodepool': 'a' }),
  });
  const hostnames = createNodeHostnames(nodes);
  t.strictSame(hostnames('a1'), ['host-a1', 'host-a3']);
  t.strictSame(hostnames('a2'), ['host-a2', 'host-a3']);
  t.strictSame(hostnames('b1'), ['host-b1'], 'with agents on all nodes, each represents only its own');
  t.strictSame(hostnames('gone'), ['gone']);
  nodes.put('a4', node('host-a4', 'a'));
  t.strictSame(hostnames('a1'), ['host-a1', 'host-a3', 'host-a4']);
});

t.test('in a pool with agents of two groups, a node without an agent stays eligible', async (t) => {
  const nodes = nodesOf({
    a1: node('host-a1', 'a', agent),
    a2: node('host-a2', 'a', agent),
    a3: node('host-a3', 'a'),
    b1: node('host-b1', 'b', agent),
    b2: node('host-b2', 'b'),
  });
  const group = (name: string, ...members: string[]) => ({
    fingerprint: name,
    name,
    nodes: members,
    architectures: ['amd64'],
  });
  const image = 'r.example/a:1';
  const pullableNodes = createPullableNodes({
    fleet: {
      pullable: () => Promise.resolve({ able: [group('able', 'a1')], unable: [group('unable', 'a2', 'b1')] }),
    },
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: { mayHave: () => false, source: () => Promise.resolve(noPullSecrets) },
    nodeHostnames: createNodeHostnames(nodes),
    clock: systemClock,
    log: silentLog,
  });
  const request = {
    namespace: 'shop',
    uses: [{ image, pullPolicy: 'IfNotPresent' as const, usedBy: ['app'], volumeOnly: false }],
    pullSecrets: { names: [] },
    serviceAccount: { namespace: 'shop', name: 'default' },
    budgetMs: 1000,
  };
  const found = await pullableNodes(request, new Map([[image, factsOf(image)]]));
  t.strictSame(found.get(image), {
    able: [{ fingerprint: 'able', architectures: ['amd64'], hostnames: ['host-a1', 'host-a3'] }],
    unable: [
      { fingerprint: 'unable', architectures: ['amd64'], hostnames: ['host-a2', 'host-b1', 'host-b2'] },
    ],
  });
});
