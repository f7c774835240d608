import type { MetricSpec } from '../../telemetry/metrics.ts';

export const labeledNodes: MetricSpec = {
  name: 'archwright_agent_nodes',
  type: 'gauge',
  help: 'Nodes with the label of agentNodes; 0 if agentNodes is all.',
};

export const uncoveredPools: MetricSpec = {
  name: 'archwright_agent_pools_uncovered',
  type: 'gauge',
  help: 'Node pools without a healthy node for an agent; 0 if agentNodes is all.',
};

export const agentNodeMetrics: readonly MetricSpec[] = [labeledNodes, uncoveredPools];
