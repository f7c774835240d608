/** Metrics of the agents as the webhook and the controller see them. */
import { counter, counts, gauge, type Metrics, type MetricSpec } from '../telemetry/metrics.ts';
import type { Agents } from './agents.ts';
import { agentErrorCodes } from './connection.ts';

const attemptOutcomes = ['answered', 'abandoned', ...agentErrorCodes] as const;

/** What the answers of a credential group show. `unknown`: neither that it can pull nor that it cannot. */
const pullResults = ['able', 'refused', 'unreachable', 'unknown'] as const;
export type PullResult = (typeof pullResults)[number];

/** Why facts of an agent are not used. */
const rejectReasons = ['invalid', 'not-owner'] as const;
export type RejectReason = (typeof rejectReasons)[number];

const specs = {
  attempts: counter(
    'archwright_fleet_attempts_total',
    'Requests to single agents. `abandoned`: the caller gave up.',
    { outcome: attemptOutcomes },
  ),
  passedOn: counter(
    'archwright_fleet_passed_on_total',
    'Lookups passed on to another credential group because access was refused.',
  ),
  rejected: counter(
    'archwright_fleet_rejected_facts_total',
    'Rejected facts: invalid, or another agent owns the image (not-owner; usual while agents come and go).',
    { reason: rejectReasons },
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
  surveyed: counter(
    'archwright_fleet_surveyed_groups_total',
    'Checks if the nodes of a credential group can pull. `unreachable`: the registry does not answer.',
    { outcome: pullResults },
  ),
} satisfies Record<string, MetricSpec>;

/** Every metric of this folder, for the documentation. */
export const fleetMetrics: readonly MetricSpec[] = Object.values(specs);

export type FleetMeters = ReturnType<typeof bindFleetMetrics>;

/** Binds the metrics. */
export function bindFleetMetrics(
  metrics: Metrics,
  agents: Pick<Agents, 'counts' | 'dockerHubLimit' | 'isAvailable'>,
) {
  const passedOn = metrics.counter(specs.passedOn);
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
  return {
    attempt: counts(metrics, specs.attempts, 'outcome', attemptOutcomes),
    passOn: () => passedOn.inc(),
    rejected: counts(metrics, specs.rejected, 'reason', rejectReasons),
    surveyed: counts(metrics, specs.surveyed, 'outcome', pullResults),
  };
}
