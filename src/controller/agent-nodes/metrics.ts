import type { MetricSpec } from '../../telemetry/metrics.ts';

export const labeledNodes: MetricSpec = {
  name: 'archwright_agent_nodes',
  type: 'gauge',
  help: 'Nodes labeled for agentNodes; 0 if it is all.',
};

export const uncoveredPools: MetricSpec = {
  name: 'archwright_agent_pools_uncovered',
  type: 'gauge',
  help: 'Node pools without a healthy node for an agent.',
};

export const agentNodeMetrics: readonly MetricSpec[] = [labeledNodes, uncoveredPools];
