/**
 * The agents as one source of image facts, for webhook and controller.
 *
 * A lookup goes to the agent that owns the image's repository (`rank.ts`), so that one agent queries the
 * registry and remembers, however many webhooks there are. If that does not end in facts, other agents are
 * asked (`lookup.ts`): the next one of its credential group, then one of each other group. Agents that fail
 * are backed off (`agents.ts`). Which groups can pull is remembered (`pullable.ts`).
 */
import type { Clock } from '../async/clock.ts';
import type { SourceProblem } from '../credentials/credential.ts';
import {
  failedFacts,
  noAgentsHint,
  type ImageFacts,
  type ImageFactsSource,
  type ImageRequest,
} from '../images/facts/facts.ts';
import type { NodeReport } from '../nodes/node-report.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { Agents, type CredentialGroup } from './agents.ts';
import { Batches } from './batches.ts';
import type { AgentConnection } from './connection.ts';
import type { Discovery } from './discovery.ts';
import { Lookup, type LookupContext, type PullSecretNodes } from './lookup.ts';
import { bindFleetMetrics } from './metrics.ts';
import { Pullability } from './pullable.ts';
import { streamSharedFacts } from './shared-facts.ts';

export type { CredentialGroup } from './agents.ts';

/** Which groups can pull an image, as far as it is known; with fewer than two groups both lists are empty. */
export interface PullableGroups {
  readonly able: readonly CredentialGroup[];
  /** Refused by the registry, or without a way to it. */
  readonly unable: readonly CredentialGroup[];
}

export interface Fleet extends ImageFactsSource {
  /** What is known when `signal` aborts. Missing and due results are looked up, and looking them up goes on. */
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

export interface FleetOptions {
  /** The caller closes it, and `connection`. */
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
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
  const { discovery, connection, clock, log, lookupTimeoutMs = defaultLookupTimeoutMs } = options;
  const agents = new Agents({ discovery, connection, clock, log });
  const meters = bindFleetMetrics(options.metrics, () => ({
    ...agents.counts(),
    available: agents.isAvailable ? 1 : 0,
    repositories: pullability.repositories,
  }));
  const context: LookupContext = {
    agents,
    batches: new Batches(connection, clock),
    meters,
    pullSecretNodes: options.pullSecretNodes,
    clock,
    log,
    timeoutMs: lookupTimeoutMs,
    onAnswer: (request, agent, facts) => pullability.note(request, agent, facts),
  };
  const pullability = new Pullability(context);

  return {
    lookup: async (request, { signal }) => {
      const groups = [...agents.byGroup(request.reference.repository).values()];
      if (groups.length > 0) return new Lookup(context, request, signal).run(groups);
      meters.lookup('unanswered');
      const error = { code: 'unavailable', message: noAgentsHint, hint: noAgentsHint } as const;
      return failedFacts(request.image, error, clock.now());
    },
    pullable: (request, signal) => pullability.groups(request, signal),
    isAvailable: () => agents.isAvailable,
    nodeReports: () => agents.view.reports,
    credentialProblems: () => agents.view.problems,
    grouped: (signal) => agents.ready(signal),
    readShared: async (onFacts, signal) => {
      await discovery.ready(signal);
      await streamSharedFacts({ agents: discovery.current(), connection, meters, log, signal }, onFacts);
      await agents.ready(signal);
    },
    close: () => {
      pullability.close();
      agents.close();
    },
  };
}
