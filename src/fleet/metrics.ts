/** Metrics of the agents as the webhook and the controller see them. */
import type { Metrics, MetricSpec } from '../telemetry/metrics.ts';
import type { AgentErrorCode } from './agents/agent-error.ts';
import { verdicts, type Verdict } from './groups/pullability.ts';

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

const questions: MetricSpec = {
  name: 'archwright_fleet_questions_total',
  type: 'counter',
  help: 'Images that agents were asked about, by outcome: answered by an agent, or by none.',
  labels: { outcome: ['answered', 'unanswered'] },
};

const attempts: MetricSpec = {
  name: 'archwright_fleet_attempts_total',
  type: 'counter',
  help: 'Requests to single agents, by outcome; abandoned ones were overtaken by another agent or given up by the asker.',
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
  help: 'Questions passed on to another credential group because one had no access.',
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
  help: 'Agents by state: ready to be asked, or left alone for a while after failures.',
  labels: { state: ['ready', 'resting'] },
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
    'Credential groups that were asked only to learn whether their nodes can pull, by outcome: able, refused by the ' +
    'registry, unable to reach it, or silent (the answer told neither).',
  labels: { outcome: verdicts },
};

const remembered: MetricSpec = {
  name: 'archwright_fleet_pullability_repositories',
  type: 'gauge',
  help: 'Repositories of which it is remembered which credential groups can pull them.',
};

/** Every metric of this folder, for the documentation. */
export const fleetMetrics: readonly MetricSpec[] = [
  questions,
  attempts,
  hedges,
  passedOn,
  answerSeconds,
  agents,
  groups,
  surveyed,
  remembered,
];

export interface FleetMeters {
  question(outcome: 'answered' | 'unanswered'): void;
  attempt(outcome: AttemptOutcome): void;
  readonly hedge: () => void;
  passOn(): void;
  answered(durationMs: number): void;
  surveyed(outcome: Verdict): void;
}

/**
 * Binds the metrics.
 * @param levels what is true now; called before each scrape
 */
export function bindFleetMetrics(
  metrics: Metrics,
  levels: () => {
    readonly ready: number;
    readonly resting: number;
    readonly groups: number;
    readonly repositories: number;
  },
): FleetMeters {
  const questionCounts = {
    answered: metrics.counter(questions, { outcome: 'answered' }),
    unanswered: metrics.counter(questions, { outcome: 'unanswered' }),
  };
  const attemptCounts = new Map(
    attemptOutcomes.map((outcome) => [outcome, metrics.counter(attempts, { outcome })]),
  );
  const hedgeCount = metrics.counter(hedges);
  const passedOnCount = metrics.counter(passedOn);
  const answerSpread = metrics.histogram(answerSeconds);
  const readyLevel = metrics.gauge(agents, { state: 'ready' });
  const restingLevel = metrics.gauge(agents, { state: 'resting' });
  const groupLevel = metrics.gauge(groups);
  const rememberedLevel = metrics.gauge(remembered);
  const surveyedCounts = new Map(
    verdicts.map((outcome) => [outcome, metrics.counter(surveyed, { outcome })]),
  );
  metrics.beforeScrape(() => {
    const now = levels();
    readyLevel.set(now.ready);
    restingLevel.set(now.resting);
    groupLevel.set(now.groups);
    rememberedLevel.set(now.repositories);
  });
  return {
    question: (outcome) => questionCounts[outcome].inc(),
    attempt: (outcome) => attemptCounts.get(outcome)?.inc(),
    hedge: () => hedgeCount.inc(),
    passOn: () => passedOnCount.inc(),
    answered: (durationMs) => answerSpread.observe(durationMs / 1000),
    surveyed: (outcome) => surveyedCounts.get(outcome)?.inc(),
  };
}
