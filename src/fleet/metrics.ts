/** Metrics of the agents as the webhook and the controller see them. */
import { counter, counts, gauge, type Metrics, type MetricSpec } from '../telemetry/metrics.ts';
import type { Agents } from './agents.ts';
import { agentErrorCodes } from './connection.ts';

const attemptOutcomes = ['answered', 'abandoned', ...agentErrorCodes] as const;

const specs = {
  attempts: counter(
    'archwright_fleet_attempts_total',
    'Requests to single agents. `abandoned`: the caller gave up.',
    { outcome: attemptOutcomes },
  ),
  agents: gauge(
    'archwright_fleet_agents',
    'Agents. `silent`: it did not answer its last request, or has had none.',
    { state: ['ready', 'silent'] },
  ),
  available: gauge(
    'archwright_fleet_available',
    'Set to 0 if no agent has answered for 30 s. Pods with unknown images are then not gated.',
  ),
  groups: gauge('archwright_fleet_credential_groups', 'Groups of agents with equal credential sources.'),
  dockerHubLimit: gauge(
    'archwright_fleet_docker_hub_limit_requests',
    'Requests that Docker Hub allows the agent that has the smallest part left. 0: no agent knows.',
  ),
  dockerHubRemaining: gauge('archwright_fleet_docker_hub_limit_remaining_requests', 'What is left of them.'),
} satisfies Record<string, MetricSpec>;

/** Every metric of this folder, for the documentation. */
export const fleetMetrics: readonly MetricSpec[] = Object.values(specs);

export type FleetMeters = ReturnType<typeof bindFleetMetrics>;

export function bindFleetMetrics(
  metrics: Metrics,
  agents: Pick<Agents, 'counts' | 'dockerHubLimit' | 'isAvailable'>,
) {
  metrics.beforeScrape(() => {
    const { ready, silent, groups } = agents.counts();
    metrics.gauge(specs.agents, { state: 'ready' }).set(ready);
    metrics.gauge(specs.agents, { state: 'silent' }).set(silent);
    metrics.gauge(specs.available).set(agents.isAvailable ? 1 : 0);
    metrics.gauge(specs.groups).set(groups);
    const { limit = 0, remaining = 0 } = agents.dockerHubLimit() ?? {};
    metrics.gauge(specs.dockerHubLimit).set(limit);
    metrics.gauge(specs.dockerHubRemaining).set(remaining);
  });
  return { attempt: counts(metrics, specs.attempts, 'outcome', attemptOutcomes) };
}
