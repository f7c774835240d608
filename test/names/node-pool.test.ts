import t from 'tap';
import { poolOf } from '../../src/names/node-pool.ts';

const base = { 'kubernetes.io/arch': 'arm64', 'node.kubernetes.io/instance-type': 'm7g.large' };

t.test('the pool of a node follows from its labels', async (t) => {
  for (const [labels, pool] of [
    [{ 'karpenter.sh/nodepool': 'a', 'eks.amazonaws.com/nodegroup': 'b' }, 'karpenter.sh/nodepool=a'],
    [{ 'eks.amazonaws.com/nodegroup': 'b' }, 'eks.amazonaws.com/nodegroup=b'],
    [{ 'cloud.google.com/gke-nodepool': 'c' }, 'cloud.google.com/gke-nodepool=c'],
    [{ 'kubernetes.azure.com/agentpool': 'd', agentpool: 'd' }, 'kubernetes.azure.com/agentpool=d'],
    [{ agentpool: 'e' }, 'agentpool=e'],
    [{ 'node-role.kubernetes.io/control-plane': '' }, 'control-plane/arm64'],
    [{}, 'arm64/m7g.large'],
  ] as const)
    t.equal(poolOf({ ...base, ...labels }), pool);
  t.equal(poolOf({}), 'unknown/unknown');
});
