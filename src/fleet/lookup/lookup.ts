/**
 * One question on its way through the agents: how much time and how many requests it may still cost, who was asked, and
 * what came of it.
 */
import { setMaxListeners } from 'node:events';
import type { ImageFacts, ImageRequest } from '../../images/facts/facts.ts';
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { AgentError, type AgentErrorCode } from '../agents/agent-error.ts';
import type { ResponseTime } from './response-time.ts';
import { askAgent } from '../agents/request-facts.ts';
import type { AgentConnection } from '../agents/connection.ts';
import { failedFacts } from '../../images/facts/failed-facts.ts';
import { hedge } from './hedge.ts';
import type { AgentAddress } from '../fleet.ts';
import type { FleetMeters } from '../metrics.ts';
import type { AgentHealth } from './agent-health.ts';

export interface FleetLookupContext {
  readonly connection: AgentConnection;
  readonly answerTime: ResponseTime;
  readonly rest: AgentHealth;
  readonly meters: FleetMeters;
  readonly clock: Clock;
  readonly log: Log;
  readonly timeoutMs: number;
  /** Told of every answer of an agent, the failures of its registry too. */
  readonly onAnswer: (question: ImageRequest, agent: AgentAddress, facts: ImageFacts) => void;
}

export interface FleetLookup {
  /** Whether the time is up, or the asker gone. */
  over(): boolean;
  /** The answer of one credential group, if one of its agents gives one. */
  group(agents: readonly AgentAddress[]): Promise<ImageFacts | undefined>;
  /** What to say where no group answered. */
  nothing(): ImageFacts;
}

/** The agent answers what it can this much before time is up, so that its answer still arrives. */
const answerMarginMs = 100;
/** The owner and two that stand in for it; if all three are gone, a fourth is unlikely to help within the time. */
const maxPerGroup = 3;
/** Bounds what one pod can cause, however many credential groups a cluster has. */
const maxPerQuestion = 8;
/** A message is for people and goes into events: a cluster may have thousands of agents. */
const maxShown = 5;

/** Failures of an agent, rather than of what it was asked. */
const needsRest: ReadonlySet<AgentErrorCode> = new Set(['unreachable', 'lost', 'refused', 'overloaded']);

/** Starts the time of a question. */
export function createFleetLookup(
  context: FleetLookupContext,
  question: ImageRequest,
  signal: AbortSignal,
): FleetLookup {
  const { answerTime, clock, log, meters, rest, timeoutMs } = context;
  const deadline = clock.monotonic() + timeoutMs;
  const timeUp = AbortSignal.timeout(timeoutMs);
  const ended = AbortSignal.any([signal, timeUp]);
  setMaxListeners(0, ended);
  const tried: string[] = [];
  const waitingFor = new Set<AgentAddress>();
  let asked = 0;
  let soonestMs = Number.POSITIVE_INFINITY;
  let late: ImageFacts | undefined;

  async function ask(agent: AgentAddress, stop: AbortSignal): Promise<ImageFacts> {
    const started = clock.monotonic();
    let facts: ImageFacts;
    waitingFor.add(agent);
    try {
      facts = await askAgent(context.connection, agent.url, question, {
        signal: AbortSignal.any([ended, stop]),
        deadlineMs: deadline - started - answerMarginMs,
      });
    } catch (error) {
      noteFailure(agent, error, stop);
      // What one agent finds wrong, the others of its group will too.
      if (error instanceof AgentError && !error.temporary) return rejected(error);
      throw error;
    } finally {
      waitingFor.delete(agent);
    }
    const tookMs = clock.monotonic() - started;
    rest.answered(agent.url);
    answerTime.observe(tookMs);
    meters.answered(tookMs);
    meters.attempt('answered');
    context.onAnswer(question, agent, facts);
    if (facts.error?.code !== 'timeout') return facts;
    // The registry was too slow for this agent; if there is time left, another one may find it done.
    late = facts;
    throw new AgentError('timeout', agent.url, facts.error.message);
  }

  function noteFailure(agent: AgentAddress, error: unknown, stop: AbortSignal): void {
    if (signal.aborted || (stop.aborted && !timeUp.aborted)) return meters.attempt('abandoned');
    const { code, message } = error instanceof AgentError ? error : fault(agent, error);
    tried.push(`${nameOf(agent)}: ${message}`);
    meters.attempt(code);
    if (timeUp.aborted) rest.slow(agent.url);
    else if (needsRest.has(code)) rest.failed(agent.url);
    log.warn({ agent: agent.url, node: agent.node, code, reason: message }, 'an agent gave no answer');
  }

  function rejected(error: AgentError): ImageFacts {
    return failedFacts(question.image, { code: 'unavailable', message: error.message }, clock.now());
  }

  /** The agents that may be asked, as long as this question may ask any. */
  function* awake(agents: readonly AgentAddress[]): Iterable<AgentAddress> {
    let inGroup = 0;
    for (const agent of agents) {
      if (inGroup === maxPerGroup || asked === maxPerQuestion) return;
      const restMs = rest.remainingMs(agent.url);
      if (restMs > 0) {
        soonestMs = Math.min(soonestMs, restMs);
        tried.push(`${nameOf(agent)}: left alone for a while after failures`);
        continue;
      }
      inGroup += 1;
      asked += 1;
      yield agent;
    }
  }

  return {
    over: () => ended.aborted,
    group: (agents) =>
      hedge({
        agents: awake(agents),
        ask,
        hedgeAfterMs: answerTime.hedgeAfterMs(),
        signal: ended,
        onHedge: meters.hedge,
        onOvertaken: (agent) => rest.slow(agent.url),
      }),
    nothing: () => {
      if (late) return late;
      const who = listed([...tried, ...[...waitingFor].map((agent) => `${nameOf(agent)}: no answer yet`)]);
      if (ended.aborted) {
        const message = `no agent answered in time: ${who}`;
        return failedFacts(question.image, { code: 'timeout', message }, clock.now());
      }
      return failedFacts(
        question.image,
        {
          code: 'unavailable',
          message: `no agent answered: ${who}`,
          ...(asked === 0 && Number.isFinite(soonestMs) && { retryAfterMs: Math.ceil(soonestMs) }),
        },
        clock.now(),
      );
    },
  };
}

/** An error that nobody foresaw; whatever it is, another agent gets the question. */
function fault(agent: AgentAddress, error: unknown): AgentError {
  return new AgentError('bad-answer', agent.url, error instanceof Error ? error.message : String(error));
}

function nameOf(agent: AgentAddress): string {
  return agent.node ?? new URL(agent.url).host;
}

function listed(tried: readonly string[]): string {
  if (tried.length === 0) return 'none was asked';
  const shown = tried.slice(0, maxShown).join('; ');
  return tried.length > maxShown ? `${shown}; and ${tried.length - maxShown} more` : shown;
}
