/** Which nodes an agent represents if only some nodes of a pool run one. */
import t from 'tap';
import { createNodeHostnames, pooledNode, type PooledNode } from '../../src/cluster/nodes.ts';

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
