/** Classes of nodes, and which nodes an agent represents if only some nodes of a pool run one. */
import t from 'tap';
import {
  createNodeClasses,
  createNodeHostnames,
  pooledNode,
  type PooledNode,
} from '../../src/cluster/nodes.ts';
import { classify } from '../../src/nodes/classify.ts';
import type { NodeReport } from '../../src/nodes/node-report.ts';

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

t.test('nodes are grouped by class again only after a class or a report has changed', async (t) => {
  const classified = (name: string, architecture: string) => ({
    classified: classify({
      metadata: { name },
      status: { nodeInfo: { architecture, operatingSystem: 'linux' } },
    }),
  });
  const nodes = new Map<string, ReturnType<typeof classified>>();
  let changed: Parameters<Parameters<typeof createNodeClasses>[0]['onEach']>[0] = () => undefined;
  let reports: ReadonlyMap<string, NodeReport> = new Map();
  const put = (name: string, object: ReturnType<typeof classified>, isTold = true): void => {
    const previous = nodes.get(name);
    nodes.set(name, object);
    if (isTold) changed({ namespace: '', name, object, previous });
  };
  put('n1', classified('n1', 'amd64'));
  const watch: Parameters<typeof createNodeClasses>[0] = {
    values: () => nodes.values(),
    onEach: (listener) => void (changed = listener),
  };
  t.equal(createNodeClasses(watch)()?.size, 1, 'without reports');
  const classes = createNodeClasses(watch, () => reports);
  const architectures = () =>
    [...(classes()?.values() ?? [])]
      .flat()
      .map((group) => [group.class.architecture, group.class.amd64Level]);
  t.strictSame(architectures(), [['amd64', undefined]], 'nodes from before');
  const first = classes();
  put('n2', classified('n2', 'arm64'), false);
  put('n1', classified('n1', 'amd64'));
  t.equal(classes(), first, 'an equal node');
  put('n2', classified('n2', 'arm64'));
  t.equal(classes(), first, 'equal to what was there');
  put('n3', classified('n3', 'amd64'));
  t.not(classes(), first);
  t.equal(architectures().length, 2);
  reports = new Map([['n1', { amd64Level: 3 }]]);
  t.strictSame(architectures().filter(([name]) => name === 'amd64').length, 2, 'a report splits a class');
  nodes.clear();
  changed({ namespace: '', name: 'n3', object: undefined, previous: classified('n3', 'amd64') });
  t.equal(classes(), undefined, 'no node is known');
});
