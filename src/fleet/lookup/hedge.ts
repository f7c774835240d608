/**
 * Queries agents of one credential group until one answers: the next agent as soon as one fails, and in
 * addition to one that is slow (a hedged request, after Dean and Barroso, "The Tail at Scale", 2013). The
 * first answer counts, the other requests are aborted.
 */
import type { Clock } from '../../async/clock.ts';
import type { AgentAddress } from '../discovery/discovery.ts';

export interface HedgeOptions<T> {
  /** In the order of requests; taken one by one, when the next is needed. */
  readonly agents: Iterable<AgentAddress>;
  /** Rejects if the agent gives no answer. */
  readonly ask: (agent: AgentAddress, signal: AbortSignal) => Promise<T>;
  /** Milliseconds without an answer after which the next agent is asked too. */
  readonly hedgeAfterMs: number;
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'timer'>;
  /** Whether slow agents may cause another request. Default: always. */
  readonly mayHedge?: () => boolean;
  /** This agent got a request because others were slow. */
  readonly onHedge?: (agent: AgentAddress) => void;
  /** A later request to another agent was answered before this one. */
  readonly onOvertaken?: (agent: AgentAddress) => void;
}

/** One for all: an error for each lookup would cost more than the rest of this file. */
const decided = new Error('another agent answered, or the lookup was aborted');

/** @returns the first answer; `undefined` if no agent gave one or `signal` aborted */
export function hedge<T>(options: HedgeOptions<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const stop = new AbortController();
  const agents = options.agents[Symbol.iterator]() as Iterator<AgentAddress, undefined>;
  const waitingFor = new Set<AgentAddress>();
  let cancelTimer = (): void => undefined;

  function end(answer: T | undefined): void {
    resolve(answer);
    cancelTimer();
    options.signal.removeEventListener('abort', abort);
    stop.abort(decided);
  }
  const abort = (): void => end(undefined);

  async function ask(agent: AgentAddress): Promise<void> {
    waitingFor.add(agent);
    try {
      const answer = await options.ask(agent, stop.signal);
      if (stop.signal.aborted) return;
      for (const earlier of waitingFor) {
        if (earlier === agent) break;
        options.onOvertaken?.(earlier);
      }
      end(answer);
    } catch {
      waitingFor.delete(agent);
      if (!stop.signal.aborted) askNext();
    }
  }

  function askNext(): void {
    cancelTimer();
    const next = agents.next();
    if (next.done === true) {
      if (waitingFor.size === 0) end(undefined);
      return;
    }
    if (waitingFor.size > 0) options.onHedge?.(next.value);
    startTimer();
    void ask(next.value);
  }

  function startTimer(): void {
    cancelTimer = options.clock.timer(options.hedgeAfterMs, () => {
      if (options.mayHedge?.() === false) startTimer();
      else askNext();
    });
  }

  if (options.signal.aborted) end(undefined);
  else {
    options.signal.addEventListener('abort', abort, { once: true });
    askNext();
  }
  return promise;
}

export interface ResponseTimeLimits {
  /** Minimum: a cold image costs a few round trips to a registry, which a second agent would repeat. */
  readonly floorMs: number;
  /** Never later: a dead agent must leave the next one time to answer. */
  readonly capMs: number;
}

export const defaultResponseTimeLimits: ResponseTimeLimits = { floorMs: 300, capMs: 3000 };

const quantile = 0.95;
/** Step of the estimate: it follows a change within some dozens of answers. */
const step = 0.2;

/**
 * How long an answer usually takes: a running estimate of the 95th percentile. It follows the quantile by
 * stochastic approximation (Robbins and Monro): an answer slower than the estimate raises it by 0.95 steps, a
 * faster one lowers it by 0.05, so that it rests where one in twenty is slower.
 */
export class ResponseTime {
  readonly #limits: ResponseTimeLimits;
  #estimateMs = 0;

  constructor(limits = defaultResponseTimeLimits) {
    this.#limits = limits;
    this.#set(1000);
  }

  /** Milliseconds without an answer after which the next agent is asked too. */
  get hedgeAfterMs(): number {
    return this.#estimateMs;
  }

  /** Adds the duration of an answer. */
  observe(durationMs: number): void {
    const direction = durationMs > this.#estimateMs ? quantile : quantile - 1;
    this.#set(this.#estimateMs * (1 + step * direction));
  }

  #set(estimateMs: number): void {
    this.#estimateMs = Math.min(this.#limits.capMs, Math.max(this.#limits.floorMs, estimateMs));
  }
}
