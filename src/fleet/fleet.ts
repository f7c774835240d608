/**
 * The agents as one inspector: the webhook's and the controller's side of the agents.
 *
 * A question about an image goes to the agent that owns the image's repository (`rendezvous.ts`), so that however many
 * webhooks ask, one agent asks the registry and remembers. What happens when that does not end in facts:
 *
 * - the agent cannot be reached, loses the connection or has no time: the next agent of the same credential group is
 *   asked; beside one that is slow, too (`first-answer.ts`);
 * - its node may not pull the image, or cannot reach the registry: one agent of each other group is asked (`groups.ts`),
 *   because another node may have other credentials and another network;
 * - an agent that failed is left alone for a while (`rest.ts`).
 *
 * Which groups could pull and which could not is remembered (`pullability.ts`), and asked of the others where somebody
 * wants to know (`survey.ts`).
 *
 * A question costs a bounded number of requests and a bounded time (`asking.ts`), and always ends in facts: where nobody
 * answered, they hold an error that says who was asked and why there was no answer.
 */
import type { ImageFacts, ImageRequest, ImageFactsSource, LookupOptions } from '../images/facts/facts.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  createResponseTime,
  defaultResponseTimeLimits,
  type ResponseTimeLimits,
} from './lookup/response-time.ts';
import { createFleetLookup, type FleetLookupContext } from './lookup/lookup.ts';
import type { AgentConnection } from './agents/connection.ts';
import { failedFacts } from '../images/facts/failed-facts.ts';
import { createGroups, type Members } from './groups/groups.ts';
import { knownFacts } from './shared-facts.ts';
import { bindFleetMetrics } from './metrics.ts';
import { createPullability } from './groups/pullability.ts';
import { rank } from './groups/rendezvous.ts';
import { createAgentHealth } from './lookup/agent-health.ts';
import { createSurvey } from './groups/survey.ts';

/** An agent as discovery found it. */
export interface AgentAddress {
  /** `https://host:port`. */
  readonly url: string;
  /** Node it runs on, where discovery knows. */
  readonly node?: string;
}

/** Finds agents: a static list, DNS, or EndpointSlices. */
export interface Discovery {
  /** The agents now; may be empty. */
  current(): readonly AgentAddress[];
  /** Resolves when the first answer is there, at the latest when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
  onChange(listener: () => void): void;
  close(): void;
}

/** The nodes of one credential group. */
export interface CredentialGroup {
  /** Short form of the fingerprint, for people. */
  readonly name: string;
  /** Nodes whose names are known, sorted. */
  readonly nodes: readonly string[];
  readonly architectures: readonly string[];
}

/** Which groups can pull an image, as far as it is known; with fewer than two groups nothing is. */
export interface PullableGroups {
  readonly able: readonly CredentialGroup[];
  /** Refused by the registry, or without a way to it. */
  readonly unable: readonly CredentialGroup[];
  /** Present where some group was never asked: resolves when it was, in a bounded time. */
  readonly asking?: Promise<void>;
}

/** The agents as one inspector: the owner of a repository is asked first, others when it fails. */
export interface Fleet extends ImageFactsSource {
  /** Answers from memory; what is missing or old is asked for behind the answer. */
  pullable(question: ImageRequest): PullableGroups;
  /** Resolves when each agent was asked for its credential group, at the latest when `signal` aborts. */
  grouped(signal: AbortSignal): Promise<void>;
  /**
   * The shared facts of all agents, once agents were found. Ends when all agents and their credential groups were asked,
   * or when `signal` aborts.
   */
  shared(signal: AbortSignal): AsyncIterable<ImageFacts>;
  close(): void;
}

export interface FleetOptions {
  /** Closed by who made it, as is `connection`. */
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Limit for one question, milliseconds; the asker's signal may end it sooner. */
  readonly lookupTimeoutMs?: number;
  readonly answerTime?: ResponseTimeLimits;
  /** How long an agent's credential fingerprint is taken as true, milliseconds. */
  readonly groupRefreshMs?: number;
}

/** Just less than the facts memory gives a question (15 s), so that it hears which agents were asked in vain. */
const defaultQuestionTimeoutMs = 14_000;

/** Codes after which another node may do better. */
const askElsewhere: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'unavailable']);

/** Makes a fleet; it asks the agents for their credential groups until it is closed. */
export function createFleet(options: FleetOptions): Fleet {
  const { discovery, connection, clock, log } = options;
  const rest = createAgentHealth(clock);
  const groups = createGroups({
    discovery,
    connection,
    clock,
    log,
    ...(options.groupRefreshMs !== undefined && { refreshMs: options.groupRefreshMs }),
  });
  const pullability = createPullability({ groups, clock });
  const meters = bindFleetMetrics(options.metrics, () => {
    const agents = discovery.current();
    const resting = agents.filter((agent) => rest.remainingMs(agent.url) > 0).length;
    return {
      ready: agents.length - resting,
      resting,
      groups: groups.size,
      repositories: pullability.size,
    };
  });
  const context: FleetLookupContext = {
    connection,
    answerTime: createResponseTime(options.answerTime ?? defaultResponseTimeLimits),
    rest,
    meters,
    clock,
    log,
    timeoutMs: options.lookupTimeoutMs ?? defaultQuestionTimeoutMs,
    onAnswer: (question, agent, facts) => pullability.note(question, agent, facts),
  };
  const survey = createSurvey({ context, pullability });
  discovery.onChange(() => rest.keep(new Set(discovery.current().map((agent) => agent.url))));

  async function lookup(question: ImageRequest, { signal }: LookupOptions): Promise<ImageFacts> {
    const agents = discovery.current();
    if (agents.length === 0) {
      meters.question('unanswered');
      const message = 'no agents are known; check that they run and how they are found';
      return failedFacts(question.image, { code: 'unavailable', message }, clock.now());
    }
    const asking = createFleetLookup(context, question, signal);
    // The owner's group comes first, because the owner does; so webhooks agree even before they know the groups.
    const ranked = rank(question.reference.repository, agents);
    let refused: ImageFacts | undefined;
    for (const [fingerprint, group] of Map.groupBy(ranked, groups.groupOf)) {
      if (asking.over()) break;
      if (refused) meters.passOn();
      const facts = await asking.group(group);
      if (!facts) continue;
      if (!askElsewhere.has(facts.error?.code ?? '')) {
        meters.question('answered');
        if (refused && !facts.error) {
          const refusal = refused.error?.code;
          const { image } = question;
          log.debug({ image, group: shortName(fingerprint), refusal }, 'another credential group could pull');
        }
        return facts;
      }
      refused = moreTelling(refused, facts);
    }
    meters.question(refused ? 'answered' : 'unanswered');
    return refused ?? asking.nothing();
  }

  function pullable(question: ImageRequest): PullableGroups {
    const members = groups.members();
    if (members.size < 2) return nothingKnown;
    const { able, unable, missing, due } = pullability.recall(question);
    const wanted = [...missing, ...due];
    const asking = wanted.length > 0 ? survey.ask(question, membersOf(wanted)) : undefined;
    const known = { able: membersOf(able).map(groupFor), unable: membersOf(unable).map(groupFor) };
    return asking && missing.length > 0 ? { ...known, asking } : known;

    function membersOf(fingerprints: readonly string[]): Members[] {
      return fingerprints.map((name) => members.get(name)).filter((group) => group !== undefined);
    }
  }

  return {
    lookup,
    pullable,
    grouped: (signal) => groups.ready(signal),
    shared: async function* (signal) {
      await discovery.ready(signal);
      yield* knownFacts({ agents: discovery.current(), connection, log, signal });
      await groups.ready(signal);
    },
    close: () => {
      survey.close();
      groups.close();
    },
  };
}

const nothingKnown: PullableGroups = { able: [], unable: [] };

/** Enough to tell the groups of a cluster apart, and to find one in what its agents say at `/v1/info`. */
const shownLength = 12;

function shortName(fingerprint: string): string {
  return fingerprint.slice(0, shownLength);
}

function groupFor({ fingerprint, nodes, architectures }: Members): CredentialGroup {
  return { name: shortName(fingerprint), nodes, architectures };
}

/** A refusal tells a person more than a registry that one of the nodes cannot reach; among equals the first stands. */
function moreTelling(before: ImageFacts | undefined, after: ImageFacts): ImageFacts {
  return before === undefined || before.error?.code === 'unavailable' ? after : before;
}
