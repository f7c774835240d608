import { gauge, type MetricSpec } from '../../telemetry/metrics.ts';

export const labeledNodes = gauge('archwright_agent_nodes', 'Nodes labeled for agentNodes; 0 if it is all.');

export const uncoveredPools = gauge(
  'archwright_agent_pools_uncovered',
  'Node pools without a healthy node for an agent.',
);

export const agentNodeMetrics: readonly MetricSpec[] = [labeledNodes, uncoveredPools];
