/** One lookup through the agents: the remaining time and requests, the queried agents, the outcome. */
import { failedFacts, type ImageFacts, type ImageRequest } from '../../images/facts/facts.ts';
import type { Clock } from '../../async/clock.ts';
import { timeLimit } from '../../async/wait.ts';
import type { FairSemaphore, Leave } from '../../async/fair-semaphore.ts';
import type { Log } from '../../telemetry/log.ts';
import type { FreshnessSettings } from '../../images/memory/freshness.ts';
import { acceptFacts, RejectedFacts } from '../agents/accept.ts';
import { AgentError, type AgentErrorCode } from '../agents/connection.ts';
import type { FactRequests, RequestState } from '../agents/fact-requests.ts';
import { hedge, type ResponseTime } from './hedge.ts';
import type { AgentAddress } from '../discovery/discovery.ts';
import type { FleetMeters } from '../metrics.ts';
import type { AgentHealth } from './agent-health.ts';
import { messageOf } from '../../names/printable.ts';

/** The nodes that may receive pull secrets. */
export interface PullSecretNodes {
  /** The setting `pullSecretNodes`, for messages. */
  readonly selector: string;
  readonly has: (node: string) => boolean;
  /** Resolves when the nodes are known, at the latest when `signal` aborts. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
}

export interface FleetLookupContext {
  readonly requests: FactRequests;
  readonly responseTime: ResponseTime;
  /** Places of lookups that may ask more agents because the first is slow. */
  readonly hedges: FairSemaphore;
  readonly health: AgentHealth;
  readonly meters: FleetMeters;
  readonly freshness: FreshnessSettings;
  /** Default: all nodes. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly timeoutMs: number;
  /** Called with every answer of an agent, failures of its registry included. */
  readonly onAnswer: (request: ImageRequest, agent: AgentAddress, facts: ImageFacts) => void;
}

/** The agent answers this much before time is up, so that its answer still arrives. */
const answerMarginMs = 100;
/** The owner and two others; if all three are gone, a fourth is unlikely to help within the time. */
const maxPerGroup = 3;
/** A slow registry makes all its images slow; hedging each would triple its load on the fleet. */
export const maxHedged = 64;
/** Bounds what one pod can cause, however many credential groups a cluster has. */
const maxPerLookup = 8;
/** The message goes into events, and a cluster may have thousands of agents. */
const maxShown = 5;

/** Failures of the agent rather than of the request. */
const backOffCodes: ReadonlySet<AgentErrorCode> = new Set(['unreachable', 'lost', 'refused', 'overloaded']);

/** Its time starts when it is made. Dispose of it at the end. */
export class FleetLookup implements Disposable {
  readonly #context: FleetLookupContext;
  readonly #request: ImageRequest;
  readonly #signal: AbortSignal;
  readonly #limit: ReturnType<typeof timeLimit>;
  readonly #ended: AbortSignal;
  readonly #deadline: number;
  /** How long an agent may be silent. */
  readonly #usualMs: number;
  readonly #failures: string[] = [];
  /** The agents that have not answered. */
  readonly #waitingFor = new Map<AgentAddress, { readonly state: RequestState; readonly since: number }>();
  #requests = 0;
  #leaveHedges: Leave | undefined;
  /** Whether an agent was left out because of `pullSecretNodes`. */
  #withheld = false;
  #soonestMs = Number.POSITIVE_INFINITY;
  #late: ImageFacts | undefined;

  constructor(context: FleetLookupContext, request: ImageRequest, signal: AbortSignal) {
    this.#context = context;
    this.#request = request;
    this.#signal = signal;
    this.#deadline = context.clock.monotonic() + context.timeoutMs;
    this.#usualMs = context.responseTime.hedgeAfterMs;
    this.#limit = timeLimit(context.timeoutMs, context.clock.sleep);
    this.#ended = AbortSignal.any([signal, this.#limit.signal]);
  }

  [Symbol.dispose](): void {
    this.#limit[Symbol.dispose]();
  }

  /** Whether the time is up or the caller gone. */
  get isOver(): boolean {
    return this.#ended.aborted;
  }

  /** The answer of one credential group; `undefined` if none of its agents gives one. */
  async askGroup(agents: readonly AgentAddress[]): Promise<ImageFacts | undefined> {
    const { meters, clock } = this.#context;
    const answer = await hedge({
      agents: this.#healthy(agents),
      ask: (agent, stop) => this.#ask(agent, stop),
      hedgeAfterMs: this.#isForDrift ? this.#context.timeoutMs : this.#usualMs,
      signal: this.#ended,
      clock,
      mayHedge: () => this.#mayHedge(),
      onHedge: meters.hedge,
      onOvertaken: (agent) => this.#noteSlow(agent),
    });
    this.#leaveHedges?.();
    this.#leaveHedges = undefined;
    return answer;
  }

  #mayHedge(): boolean {
    this.#leaveHedges ??= this.#context.hedges.tryEnter(this.#request.namespace ?? '');
    return this.#leaveHedges !== undefined;
  }

  /** The facts if no group answered. */
  unanswered(): ImageFacts {
    if (this.#late) return this.#late;
    const now = this.#context.clock.now();
    const waiting = [...this.#waitingFor.keys()].map((agent) => `${nameOf(agent)}: no answer yet`);
    const reasons = listed([...this.#failures, ...waiting]);
    const { image } = this.#request;
    if (this.#withheld && this.#requests === 0) {
      const { selector = '' } = this.#context.pullSecretNodes ?? {};
      const message =
        `no agent may receive the pull secrets of the pod: none that is available runs on a node that matches pullSecretNodes ` +
        `(${selector}); label such a node, or change the setting`;
      return failedFacts(image, { code: 'forbidden', message }, now);
    }
    if (this.isOver) {
      return failedFacts(image, { code: 'timeout', message: `no agent answered in time: ${reasons}` }, now);
    }
    const retryAfterMs = Math.ceil(this.#soonestMs);
    const mayRetry = this.#requests === 0 && Number.isFinite(retryAfterMs);
    const message = `no agent answered: ${reasons}`;
    const hint = 'no agent answered; see archwright status';
    return failedFacts(image, { code: 'unavailable', message, hint, ...(mayRetry && { retryAfterMs }) }, now);
  }

  /** No pod waits for a check for drift, so no second agent repeats its HEAD because the first is slow. */
  get #isForDrift(): boolean {
    return this.#request.knownDigest !== undefined;
  }

  /** The agents to ask, within the limits of the group and of the lookup. */
  *#healthy(agents: readonly AgentAddress[]): Iterable<AgentAddress> {
    let inGroup = 0;
    for (const agent of agents) {
      if (inGroup === maxPerGroup || this.#requests === maxPerLookup) return;
      // No request without time for its answer: images of a slow registry reach their deadlines together.
      if (this.#requests > 0 && this.#deadline - this.#context.clock.monotonic() < this.#usualMs) return;
      if (!this.#mayReceiveRequest(agent)) {
        this.#withheld = true;
        continue;
      }
      const backedOffMs = this.#context.health.backedOffMs(agent.url);
      if (backedOffMs > 0) {
        this.#soonestMs = Math.min(this.#soonestMs, backedOffMs);
        this.#failures.push(`${nameOf(agent)}: backed off after failures`);
        continue;
      }
      inGroup += 1;
      this.#requests += 1;
      yield agent;
    }
  }

  /** An agent's claim about its node does not count: without a known node, it gets no pull secrets. */
  #mayReceiveRequest({ node }: AgentAddress): boolean {
    const { pullSecretNodes } = this.#context;
    if (pullSecretNodes === undefined || this.#request.pullCredentials.length === 0) return true;
    return node !== undefined && pullSecretNodes.has(node);
  }

  async #ask(agent: AgentAddress, stop: AbortSignal): Promise<ImageFacts> {
    const { requests, freshness, clock, health, responseTime, meters, onAnswer } = this.#context;
    const started = clock.monotonic();
    let facts: ImageFacts;
    const setState = (state: RequestState): void => {
      this.#waitingFor.set(agent, { state, since: clock.monotonic() });
    };
    setState('waiting');
    try {
      const answer = await requests.ask(agent.url, this.#request, {
        signal: stop,
        deadline: this.#deadline - answerMarginMs,
        onState: (state) => {
          setState(state);
          if (state === 'responding') health.answered(agent.url);
        },
      });
      facts = await acceptFacts(answer, this.#request.reference, freshness, clock.now());
    } catch (error) {
      this.#noteFailure(agent, error, stop);
      if (!(error instanceof AgentError) || error.temporary) throw error;
      // The other agents of the group would reject the request too.
      return failedFacts(this.#request.image, { code: 'unavailable', message: error.message }, clock.now());
    } finally {
      this.#waitingFor.delete(agent);
    }
    const tookMs = clock.monotonic() - started;
    health.answered(agent.url);
    meters.answered(tookMs);
    meters.attempt('answered');
    onAnswer(this.#request, agent, facts);
    if (this.#isForDrift) return facts;
    if (facts.error?.code !== 'timeout') {
      responseTime.observe(tookMs);
      return facts;
    }
    // The registry was too slow for this agent; another agent may find it faster.
    this.#late = facts;
    throw new AgentError('timeout', agent.url, facts.error.message);
  }

  /** Agents respond at once and send facts as they find them: waiting for facts is not slowness. */
  #noteSlow(agent: AgentAddress): void {
    const { state, since = 0 } = this.#waitingFor.get(agent) ?? {};
    const { clock, health } = this.#context;
    if (state === 'sent' && clock.monotonic() - since >= this.#usualMs) health.slow(agent.url);
  }

  #noteFailure(agent: AgentAddress, error: unknown, stop: AbortSignal): void {
    const { meters, health, log } = this.#context;
    const isTimeUp = this.#limit.signal.aborted;
    if (this.#signal.aborted || (stop.aborted && !isTimeUp)) return meters.attempt('abandoned');
    if (error instanceof RejectedFacts) meters.rejected(error.reason);
    const isKnown = error instanceof AgentError;
    const { code, message } = isKnown ? error : ({ code: 'bad-answer', message: messageOf(error) } as const);
    this.#failures.push(`${nameOf(agent)}: ${message}`);
    meters.attempt(code);
    if (isTimeUp) this.#noteSlow(agent);
    else if (backOffCodes.has(code)) health.failed(agent.url);
    log.warn({ agent: agent.url, node: agent.node, code, reason: message }, 'an agent gave no answer');
  }
}

function nameOf(agent: AgentAddress): string {
  return agent.node ?? new URL(agent.url).host;
}

function listed(reasons: readonly string[]): string {
  if (reasons.length === 0) return 'no request was sent';
  const shown = reasons.slice(0, maxShown).join('; ');
  return reasons.length > maxShown ? `${shown}; and ${reasons.length - maxShown} more` : shown;
}
