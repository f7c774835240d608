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
 * A question costs a bounded number of requests and a bounded time (`asking.ts`), and always ends in facts: where nobody
 * answered, they hold an error that says who was asked and why there was no answer.
 */
import type { ImageFacts, ImageQuestion, Inspector, InspectOptions } from '../images/facts.ts';
import type { Clock } from '../telemetry/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createAnswerTime, defaultAnswerTimeLimits, type AnswerTimeLimits } from './answer-time.ts';
import { createAsking, type AskingContext } from './asking.ts';
import type { AgentConnection } from './connection.ts';
import { failedFacts } from './failed.ts';
import { createGroups } from './groups.ts';
import { knownFacts } from './known.ts';
import { bindFleetMetrics } from './metrics.ts';
import { rank } from './rendezvous.ts';
import { createRest } from './rest.ts';

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

/** The agents as one inspector: the owner of a repository is asked first, others when it fails. */
export interface Fleet extends Inspector {
  /**
   * What the agents know already, for a webhook that starts. Ends when all have told, their credential groups too, or
   * when `signal` aborts.
   */
  known(signal: AbortSignal): AsyncIterable<ImageFacts>;
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
  readonly questionTimeoutMs?: number;
  readonly answerTime?: AnswerTimeLimits;
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
  const rest = createRest(clock);
  const groups = createGroups({
    discovery,
    connection,
    clock,
    log,
    ...(options.groupRefreshMs !== undefined && { refreshMs: options.groupRefreshMs }),
  });
  const meters = bindFleetMetrics(options.metrics, () => {
    const agents = discovery.current();
    const resting = agents.filter((agent) => rest.remainingMs(agent.url) > 0).length;
    return { ready: agents.length - resting, resting, groups: groups.size };
  });
  const context: AskingContext = {
    connection,
    answerTime: createAnswerTime(options.answerTime ?? defaultAnswerTimeLimits),
    rest,
    meters,
    clock,
    log,
    timeoutMs: options.questionTimeoutMs ?? defaultQuestionTimeoutMs,
  };
  discovery.onChange(() => rest.keep(new Set(discovery.current().map((agent) => agent.url))));

  async function inspect(question: ImageQuestion, { signal }: InspectOptions): Promise<ImageFacts> {
    const agents = discovery.current();
    if (agents.length === 0) {
      meters.question('unanswered');
      const message = 'no agents are known; check that they run and how they are found';
      return failedFacts(question.image, { code: 'unavailable', message }, clock);
    }
    const asking = createAsking(context, question, signal);
    // The owner's group comes first, because the owner does; so webhooks agree even before they know the groups.
    const ranked = rank(question.reference.repository, agents);
    let refused: ImageFacts | undefined;
    for (const group of Map.groupBy(ranked, groups.groupOf).values()) {
      if (asking.over()) break;
      if (refused) meters.passOn();
      const facts = await asking.group(group);
      if (!facts) continue;
      if (!askElsewhere.has(facts.error?.code ?? '')) {
        meters.question('answered');
        return facts;
      }
      refused = moreTelling(refused, facts);
    }
    meters.question(refused ? 'answered' : 'unanswered');
    return refused ?? asking.nothing();
  }

  return {
    inspect,
    known: async function* (signal) {
      yield* knownFacts({ agents: discovery.current(), connection, log, signal });
      await groups.ready(signal);
    },
    close: groups.close,
  };
}

/** A refusal tells a person more than a registry that one of the nodes cannot reach; among equals the first stands. */
function moreTelling(before: ImageFacts | undefined, after: ImageFacts): ImageFacts {
  return before === undefined || before.error?.code === 'unavailable' ? after : before;
}
