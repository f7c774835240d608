/**
 * The agents as one source of image facts, for webhook and controller.
 *
 * A lookup goes to the agent that owns the image's repository (`rendezvous.ts`), so that one agent queries
 * the registry and remembers, however many webhooks there are. If that does not end in facts:
 *
 * - the agent is unreachable, loses the connection or is overloaded: the next agent of its credential group
 *   is asked; if it is slow, in addition to it (`hedge.ts`);
 * - its node may not pull the image, or cannot reach the registry: one agent of each other group is asked
 *   (`groups.ts`), because other nodes may have other credentials and another network;
 * - an agent that failed is backed off (`agent-health.ts`).
 *
 * The groups that can pull are remembered (`pullability.ts`), and the others queried on demand (`survey.ts`).
 *
 * A lookup costs a bounded number of requests and a bounded time (`lookup.ts`), and always ends in facts:
 * without an answer, they hold an error that lists the queried agents and their failures.
 */
import type { AgentAddress, Discovery } from './discovery/discovery.ts';
import {
  failedFacts,
  noAgentsHint,
  type ImageFacts,
  type ImageRequest,
  type ImageFactsSource,
  type LookupOptions,
} from '../images/facts/facts.ts';
import { defaultFreshness, type FreshnessSettings } from '../images/memory/freshness.ts';
import type { Clock } from '../async/clock.ts';
import { FairSemaphore } from '../async/fair-semaphore.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { ResponseTime, type ResponseTimeLimits } from './lookup/hedge.ts';
import { FleetLookup, maxHedged, type FleetLookupContext, type PullSecretNodes } from './lookup/lookup.ts';
import type { SourceProblem } from '../credentials/credential.ts';
import type { NodeReport } from '../nodes/node-report.ts';
import type { AgentConnection } from './agents/connection.ts';
import { FactRequests } from './agents/fact-requests.ts';
import { Availability } from './groups/availability.ts';
import { Groups, type Members } from './groups/groups.ts';
import { sharedFacts } from './shared-facts.ts';
import { bindFleetMetrics } from './metrics.ts';
import { Pullability } from './groups/pullability.ts';
import { rank } from './groups/rendezvous.ts';
import { AgentHealth } from './lookup/agent-health.ts';
import { Survey } from './groups/survey.ts';

export interface CredentialGroup {
  /** Short form of the fingerprint, for people. */
  readonly name: string;
  /** Nodes with known names, sorted. */
  readonly nodes: readonly string[];
  readonly architectures: readonly string[];
}

/** Which groups can pull an image, as far as it is known; with fewer than two groups both lists are empty. */
export interface PullableGroups {
  readonly able: readonly CredentialGroup[];
  /** Refused by the registry, or without a way to it. */
  readonly unable: readonly CredentialGroup[];
  /** Present for a group that was never queried: resolves when it was, in a bounded time. */
  readonly pending?: Promise<void>;
}

export interface Fleet extends ImageFactsSource {
  /** Answers from memory; missing and due results are looked up in the background. */
  pullable(request: ImageRequest): PullableGroups;
  /** Facts of up to `opinions` agents on different nodes: no compromised node decides alone. */
  opinions(request: ImageRequest, signal: AbortSignal): Promise<readonly ImageFacts[]>;
  /** False if no agent has answered for some time, so that no pod should wait for one. */
  isAvailable(): boolean;
  /** What agents report of their nodes, by node; the same map until something changes. */
  nodeReports(): ReadonlyMap<string, NodeReport>;
  /** Credentials that nodes do not use, and why, by node; nodes without a problem are left out. */
  credentialProblems(): ReadonlyMap<string, readonly SourceProblem[]>;
  /** Resolves when each agent was queried for its credential group, at the latest with `signal`. */
  grouped(signal: AbortSignal): Promise<void>;
  /** The shared facts of all agents that discovery has found. Ends after them, or with `signal`. */
  shared(signal: AbortSignal): AsyncIterable<ImageFacts>;
  close(): void;
}

export interface FleetOptions {
  /** The caller closes it, and `connection`. */
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Bounds how long facts of agents are fresh. */
  readonly freshness?: FreshnessSettings;
  /** Nodes that may receive pull secrets. Default: all. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
  /** Limit of one lookup, milliseconds; the caller's signal may end it sooner. */
  readonly lookupTimeoutMs?: number;
  readonly responseTime?: ResponseTimeLimits;
}

/** Just less than memory gives a lookup (15 s), so that the answer names the agents that failed. */
const defaultLookupTimeoutMs = 14_000;

/** Agents that must agree before a pod is evicted. */
export const opinions = 2;

/** Codes after which another node may have access. */
const askElsewhere: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'unavailable']);

/** Makes a fleet; it queries the agents for their credential groups until it is closed. */
export function createFleet(options: FleetOptions): Fleet {
  const { discovery, connection, clock, log, freshness = defaultFreshness } = options;
  const health = new AgentHealth(clock);
  const availability = new Availability({ clock, log });
  const groups = new Groups({
    discovery,
    connection,
    clock,
    log,
    isFailing: health.isFailing,
    onRound: () => {
      const agents = discovery.current();
      availability.note(agents.length, agents.filter(groups.answers).length);
    },
  });
  const pullability = new Pullability(groups, clock);
  const meters = bindFleetMetrics(options.metrics, () => {
    const agents = discovery.current();
    const stateOf = (agent: AgentAddress): 'silent' | 'backedOff' | 'ready' => {
      if (health.backedOffMs(agent.url) > 0) return 'backedOff';
      return groups.answers(agent) ? 'ready' : 'silent';
    };
    const states = Map.groupBy(agents, stateOf);
    return {
      ready: states.get('ready')?.length ?? 0,
      backedOff: states.get('backedOff')?.length ?? 0,
      silent: states.get('silent')?.length ?? 0,
      available: availability.isAvailable ? 1 : 0,
      groups: groups.size,
      repositories: pullability.size,
    };
  });
  const context: FleetLookupContext = {
    requests: new FactRequests({ connection, clock }),
    responseTime: new ResponseTime(options.responseTime),
    hedges: new FairSemaphore({ places: maxHedged }),
    health,
    meters,
    freshness,
    pullSecretNodes: options.pullSecretNodes,
    clock,
    log,
    timeoutMs: options.lookupTimeoutMs ?? defaultLookupTimeoutMs,
    onAnswer: (request, agent, facts) => pullability.note(request, agent, facts),
  };
  const survey = new Survey(context, pullability);
  discovery.onChange(() => health.retain(new Set(discovery.current().map((agent) => agent.url))));

  async function lookup(request: ImageRequest, { signal }: LookupOptions): Promise<ImageFacts> {
    const agents = discovery.current();
    if (agents.length === 0) {
      meters.lookup('unanswered');
      const error = { code: 'unavailable', message: noAgentsHint, hint: noAgentsHint } as const;
      return failedFacts(request.image, error, clock.now());
    }
    if (request.pullCredentials.length > 0) await options.pullSecretNodes?.ready(signal);
    using fleetLookup = new FleetLookup(context, request, signal);
    // The owner's group comes first, so webhooks agree even before they know the groups.
    const ranked = rank(request.reference.repository, agents);
    let refusal: ImageFacts | undefined;
    for (const [fingerprint, group] of Map.groupBy(ranked, groups.groupOf)) {
      if (fleetLookup.isOver) break;
      if (refusal) meters.passOn();
      const facts = await fleetLookup.askGroup(group);
      if (!facts) continue;
      if (askElsewhere.has(facts.error?.code ?? '')) {
        refusal = moreInformative(refusal, facts);
        continue;
      }
      meters.lookup('answered');
      if (refusal && !facts.error) {
        log.debug(
          { image: request.image, group: shortName(fingerprint), refusal: refusal.error?.code },
          'another credential group could pull',
        );
      }
      return facts;
    }
    meters.lookup(refusal ? 'answered' : 'unanswered');
    return refusal ?? fleetLookup.unanswered();
  }

  async function askSeveral(request: ImageRequest, signal: AbortSignal): Promise<readonly ImageFacts[]> {
    using fleetLookup = new FleetLookup(context, request, signal);
    const found: ImageFacts[] = [];
    for (const agent of rank(request.reference.repository, discovery.current())) {
      if (found.length === opinions || fleetLookup.isOver) break;
      const facts = await fleetLookup.askGroup([agent]);
      if (facts && !facts.error && !facts.stale) found.push(facts);
    }
    return found;
  }

  function pullable(request: ImageRequest): PullableGroups {
    const members = groups.members();
    if (members.size < 2) return { able: [], unable: [] };
    const membersOf = (fingerprints: readonly string[]): Members[] =>
      fingerprints.flatMap((name) => members.get(name) ?? []);
    const { able, unable, missing, due } = pullability.recall(request);
    const lookups = [...missing, ...due];
    const pending = lookups.length > 0 ? survey.ask(request, membersOf(lookups)) : undefined;
    return {
      able: membersOf(able).map(groupFor),
      unable: membersOf(unable).map(groupFor),
      ...(pending && missing.length > 0 && { pending }),
    };
  }

  return {
    lookup,
    pullable,
    opinions: askSeveral,
    isAvailable: () => availability.isAvailable,
    nodeReports: () => groups.reports(),
    credentialProblems: () => groups.problems(),
    grouped: (signal) => groups.ready(signal),
    shared: async function* (signal) {
      await discovery.ready(signal);
      yield* sharedFacts({ ...context, connection, agents: discovery.current(), signal });
      await groups.ready(signal);
    },
    close: () => {
      survey.close();
      groups.close();
      availability.close();
    },
  };
}

/** Enough to tell groups apart, and to find one in the agents' answers at `/v1/info`. */
const shownLength = 12;

function shortName(fingerprint: string): string {
  return fingerprint.slice(0, shownLength);
}

function groupFor({ fingerprint, nodes, architectures }: Members): CredentialGroup {
  return { name: shortName(fingerprint), nodes, architectures };
}

/** A refusal is more informative than a registry that a node cannot reach; among equals the first stands. */
function moreInformative(before: ImageFacts | undefined, after: ImageFacts): ImageFacts {
  return before === undefined || before.error?.code === 'unavailable' ? after : before;
}
