/**
 * Asks agents of one credential group until one answers: the next agent as soon as one fails, and beside one that is
 * slow (a hedged request, after Dean and Barroso, "The Tail at Scale", 2013). The first answer counts, the other
 * questions are given up.
 */
import type { AgentAddress } from '../fleet.ts';

export interface InTurn<T> {
  /** In the order in which they are asked; taken one by one, when the next is needed. */
  readonly agents: Iterable<AgentAddress>;
  /** Rejects where the agent gives no answer; noting why is its own business. */
  readonly ask: (agent: AgentAddress, signal: AbortSignal) => Promise<T>;
  /** Milliseconds without an answer after which the next agent is asked too. */
  readonly hedgeAfterMs: number;
  readonly signal: AbortSignal;
  /** This agent was asked beside others, because they were slow. */
  readonly onHedge?: (agent: AgentAddress) => void;
  /** This agent was asked, and another one that was asked later answered before it. */
  readonly onOvertaken?: (agent: AgentAddress) => void;
}

/** One for all: making an error for each question costs more than the rest of this file. */
const decided = new Error('another agent answered, or the question was given up');

/**
 * @returns the first answer, or `undefined` where no agent gave one or `signal` aborted
 */
export function hedge<T>(turn: InTurn<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const stop = new AbortController();
  const agents = turn.agents[Symbol.iterator]() as Iterator<AgentAddress, undefined>;
  const waitingFor = new Set<AgentAddress>();
  let hedge: NodeJS.Timeout | undefined;

  function end(answer: T | undefined): void {
    resolve(answer);
    clearTimeout(hedge);
    turn.signal.removeEventListener('abort', giveUp);
    stop.abort(decided);
  }
  const giveUp = (): void => end(undefined);

  async function ask(agent: AgentAddress): Promise<void> {
    waitingFor.add(agent);
    try {
      const answer = await turn.ask(agent, stop.signal);
      if (stop.signal.aborted) return;
      for (const earlier of waitingFor) {
        if (earlier === agent) break;
        turn.onOvertaken?.(earlier);
      }
      end(answer);
    } catch {
      waitingFor.delete(agent);
      if (!stop.signal.aborted) next();
    }
  }

  function next(): void {
    clearTimeout(hedge);
    const step = agents.next();
    if (step.done === true) {
      if (waitingFor.size === 0) end(undefined);
      return;
    }
    const agent = step.value;
    if (waitingFor.size > 0) turn.onHedge?.(agent);
    hedge = setTimeout(next, turn.hedgeAfterMs);
    void ask(agent);
  }

  if (turn.signal.aborted) end(undefined);
  else {
    turn.signal.addEventListener('abort', giveUp, { once: true });
    next();
  }
  return promise;
}
