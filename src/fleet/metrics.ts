/** Metrics of the agents as the webhook and the controller see them. */
import type { Metrics, MetricSpec } from '../telemetry/metrics.ts';
import type { AgentErrorCode } from './agents/agent-error.ts';
import { pullResults, type PullResult } from './groups/pullability.ts';

const attemptOutcomes = [
  'answered',
  'abandoned',
  'unreachable',
  'lost',
  'timeout',
  'refused',
  'overloaded',
  'rejected',
  'bad-answer',
] as const satisfies readonly (AgentErrorCode | 'answered' | 'abandoned')[];
export type AttemptOutcome = (typeof attemptOutcomes)[number];

const lookups: MetricSpec = {
  name: 'archwright_fleet_lookups_total',
  type: 'counter',
  help: 'Lookups of images through the agents, by outcome: answered by an agent, or by none.',
  labels: { outcome: ['answered', 'unanswered'] },
};

const attempts: MetricSpec = {
  name: 'archwright_fleet_attempts_total',
  type: 'counter',
  help: 'Requests to single agents, by outcome; abandoned ones were overtaken by another agent or aborted by the caller.',
  labels: { outcome: attemptOutcomes },
};

const hedges: MetricSpec = {
  name: 'archwright_fleet_hedges_total',
  type: 'counter',
  help: 'Requests to a second agent because the first took longer than usual.',
};

const passedOn: MetricSpec = {
  name: 'archwright_fleet_passed_on_total',
  type: 'counter',
  help: 'Lookups passed on to another credential group because one had no access.',
};

const answerSeconds: MetricSpec = {
  name: 'archwright_fleet_answer_duration_seconds',
  type: 'histogram',
  help: 'Time until an agent answered.',
  buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 30],
};

const agents: MetricSpec = {
  name: 'archwright_fleet_agents',
  type: 'gauge',
  help: 'Agents by state: ready, or backed off after failures.',
  labels: { state: ['ready', 'backed-off'] },
};

const groups: MetricSpec = {
  name: 'archwright_fleet_credential_groups',
  type: 'gauge',
  help: 'Groups of agents with the same credential sources.',
};

const surveyed: MetricSpec = {
  name: 'archwright_fleet_surveyed_groups_total',
  type: 'counter',
  help:
    'Credential groups that were asked only whether their nodes can pull, by outcome: able, refused by the registry, ' +
    'unable to reach it, or unknown (the answer shows neither).',
  labels: { outcome: pullResults },
};

const repositories: MetricSpec = {
  name: 'archwright_fleet_pullability_repositories',
  type: 'gauge',
  help: 'Repositories for which memory holds the credential groups that can pull them.',
};

/** Every metric of this folder, for the documentation. */
export const fleetMetrics: readonly MetricSpec[] = [
  lookups,
  attempts,
  hedges,
  passedOn,
  answerSeconds,
  agents,
  groups,
  surveyed,
  repositories,
];

export interface FleetMeters {
  lookup(outcome: 'answered' | 'unanswered'): void;
  attempt(outcome: AttemptOutcome): void;
  readonly hedge: () => void;
  passOn(): void;
  answered(durationMs: number): void;
  surveyed(outcome: PullResult): void;
}

/**
 * Binds the metrics.
 * @param levels called before each scrape
 */
export function bindFleetMetrics(
  metrics: Metrics,
  levels: () => {
    readonly ready: number;
    readonly backedOff: number;
    readonly groups: number;
    readonly repositories: number;
  },
): FleetMeters {
  const lookupCounts = {
    answered: metrics.counter(lookups, { outcome: 'answered' }),
    unanswered: metrics.counter(lookups, { outcome: 'unanswered' }),
  };
  const attemptCounts = new Map(
    attemptOutcomes.map((outcome) => [outcome, metrics.counter(attempts, { outcome })]),
  );
  const hedgeCount = metrics.counter(hedges);
  const passedOnCount = metrics.counter(passedOn);
  const answerSpread = metrics.histogram(answerSeconds);
  const readyLevel = metrics.gauge(agents, { state: 'ready' });
  const backedOffLevel = metrics.gauge(agents, { state: 'backed-off' });
  const groupLevel = metrics.gauge(groups);
  const repositoryLevel = metrics.gauge(repositories);
  const surveyedCounts = new Map(
    pullResults.map((outcome) => [outcome, metrics.counter(surveyed, { outcome })]),
  );
  metrics.beforeScrape(() => {
    const now = levels();
    readyLevel.set(now.ready);
    backedOffLevel.set(now.backedOff);
    groupLevel.set(now.groups);
    repositoryLevel.set(now.repositories);
  });
  return {
    lookup: (outcome) => lookupCounts[outcome].inc(),
    attempt: (outcome) => attemptCounts.get(outcome)?.inc(),
    hedge: () => hedgeCount.inc(),
    passOn: () => passedOnCount.inc(),
    answered: (durationMs) => answerSpread.observe(durationMs / 1000),
    surveyed: (outcome) => surveyedCounts.get(outcome)?.inc(),
  };
}
