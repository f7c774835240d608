/**
 * The agents as one source of image facts, for webhook and controller.
 *
 * A lookup goes to the agent that owns the image's repository (`rank.ts`), so that one agent queries the
 * registry and remembers, however many webhooks there are. If that does not end in facts, other agents get the
 * request (`lookup.ts`): the next one of its credential group, then one of each other group. Which groups can
 * pull is remembered (`pullable.ts`).
 */
import { setMaxListeners } from 'node:events';
import type { SourceProblem } from '../credentials/credential.ts';
import type { ImageFacts, ImageFactsSource, ImageRequest } from '../images/facts/facts.ts';
import type { NodeReport } from '../nodes/node-report.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { Agents, type AgentsOptions } from './agents.ts';
import { Lookup, type PullSecretNodes } from './lookup.ts';
import { bindFleetMetrics } from './metrics.ts';
import { createPullable, type PullableGroups } from './pullable.ts';
import { createRequestFacts } from './request-facts.ts';
import { streamSharedFacts } from './shared-facts.ts';

export interface Fleet extends ImageFactsSource {
  /** What is known when `signal` aborts. Checks of other groups go on after that. */
  pullable(request: ImageRequest, signal: AbortSignal): Promise<PullableGroups>;
  /** False if no agent has answered for some time, so that no pod should wait for one. */
  isAvailable(): boolean;
  /** What agents report of their nodes, by node; the same map until something changes. */
  nodeReports(): ReadonlyMap<string, NodeReport>;
  /** Credentials that nodes do not use, and why, by node; nodes without a problem are left out. */
  credentialProblems(): ReadonlyMap<string, readonly SourceProblem[]>;
  /** Resolves when each agent was queried for its credential group, at the latest with `signal`. */
  grouped(signal: AbortSignal): Promise<void>;
  /**
   * Passes on the shared facts of all agents that discovery has found, and learns the groups. Ends after them,
   * or with `signal`.
   */
  readShared(onFacts: (facts: ImageFacts) => void, signal: AbortSignal): Promise<void>;
  close(): void;
}

/** The caller closes `connection`. */
export interface FleetOptions extends Omit<AgentsOptions, 'closing'> {
  readonly metrics: Metrics;
  /** Nodes that may receive pull secrets. Default: all. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
  /** Limit of one lookup, milliseconds; the caller's signal may end it sooner. */
  readonly lookupTimeoutMs?: number;
}

/** Just less than the cache gives a lookup (15 s), so that the answer names the agents that failed. */
const defaultLookupTimeoutMs = 14_000;

/** Makes a fleet; it queries the agents for their credential groups until it is closed. */
export function createFleet(options: FleetOptions): Fleet {
  const { discovery, connection, clock, log, pullSecretNodes } = options;
  const { lookupTimeoutMs: timeoutMs = defaultLookupTimeoutMs } = options;
  const ending = new AbortController();
  const { signal: closing } = ending;
  setMaxListeners(0, closing);
  const agents = new Agents({ discovery, connection, clock, log, closing });
  const meters = bindFleetMetrics(options.metrics, agents);
  const requestFacts = createRequestFacts(connection, clock);
  const context = { agents, requestFacts, meters, pullSecretNodes, clock, log, timeoutMs };

  return {
    lookup: async (request, { signal }) => {
      const lookup = new Lookup(context, request, signal);
      const groups = [...agents.byGroup(request.reference.repository).values()];
      return (await lookup.answer(groups)) ?? lookup.unanswered();
    },
    pullable: createPullable(context, closing),
    isAvailable: () => agents.isAvailable,
    nodeReports: () => agents.view.reports,
    credentialProblems: () => agents.view.problems,
    grouped: (signal) => agents.ready(signal),
    readShared: async (onFacts, signal) => {
      await discovery.ready(signal);
      await streamSharedFacts({ agents: discovery.current(), connection, meters, log, signal }, onFacts);
      await agents.ready(signal);
    },
    close: () => ending.abort(),
  };
}
