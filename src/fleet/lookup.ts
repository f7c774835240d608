/**
 * One lookup through the agents, one request after the other. The credential group of the repository's owner
 * comes first. Its second agent gets the request if the first fails, is silent, or has not answered after half of the
 * time that is left. Another group follows if the registry refuses the first one or cannot be reached from
 * there, because other nodes may have other credentials and another network, or if its agents give no answer.
 *
 * A lookup costs a bounded number of requests and a bounded time. Without an answer, its error lists the agents
 * and their failures.
 */
import type { Clock } from '../async/clock.ts';
import { limited } from '../async/wait.ts';
import { noAgentsHint, type FactsError, type ImageFacts, type ImageRequest } from '../images/facts/facts.ts';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import { tickMs, type Agents } from './agents.ts';
import { AgentError, type AgentErrorCode } from './connection.ts';
import type { AgentAddress } from './discovery.ts';
import type { FleetMeters } from './metrics.ts';
import type { RequestFacts } from './request-facts.ts';

/** The nodes that may receive pull secrets. */
export interface PullSecretNodes {
  /** The setting `pullSecretNodes`, for messages. */
  readonly selector: string;
  readonly has: (node: string) => boolean;
  /** Resolves when the nodes are known, at the latest when `signal` aborts. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
}

export interface LookupContext {
  readonly agents: Agents;
  readonly requestFacts: RequestFacts;
  readonly meters: FleetMeters;
  /** Default: all nodes. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Limit of one lookup, milliseconds. */
  readonly timeoutMs: number;
}

/** If the owner and the next agent fail, a third is unlikely to help within the time. */
const maxPerGroup = 2;
/** Bounds what one pod can cause, however many credential groups a cluster has. */
const maxRequests = 8;
/** No further request without time for an answer, which takes a few round trips to a registry. */
const leastMs = 300;
/** The message goes into events, and a cluster may have thousands of agents. */
const maxShown = 5;

/** Failures of the agent rather than of the request. */
const agentFails: ReadonlySet<AgentErrorCode> = new Set(['unreachable', 'lost', 'refused', 'overloaded']);

/** Its time runs from when it is made. */
export class Lookup {
  readonly #context: LookupContext;
  readonly #request: ImageRequest;
  readonly #signal: AbortSignal;
  readonly #deadline: number;
  /** The only nodes whose agents may receive the request; `undefined`: all. */
  readonly #nodes: PullSecretNodes | undefined;
  readonly #failures: string[] = [];
  #requests = 0;
  /** Whether an agent was left out because of `pullSecretNodes`. */
  #withheld = false;

  constructor(context: LookupContext, request: ImageRequest, signal: AbortSignal) {
    this.#context = context;
    this.#request = request;
    this.#signal = signal;
    this.#nodes = request.pullCredentials.length > 0 ? context.pullSecretNodes : undefined;
    this.#deadline = context.clock.monotonic() + context.timeoutMs;
  }

  /**
   * The best answer of an agent; `undefined` if none has answered.
   * @param groups agents in the order of requests
   */
  async answer(groups: readonly (readonly AgentAddress[])[]): Promise<ImageFacts | undefined> {
    const { sleep } = this.#context.clock;
    if (this.#nodes) await limited(this.#leftMs, this.#signal, this.#nodes.ready, sleep);
    const plan = groups.flatMap((group) => this.#available(group).map((agent) => ({ agent, group })));
    const last = plan.at(-1);
    let best: ImageFacts | undefined;
    let refusedGroup: unknown;
    for (const { agent, group } of plan) {
      if (group === refusedGroup) continue;
      const leftMs = this.#leftMs;
      if (this.#requests === maxRequests || leftMs < (this.#requests > 0 ? leastMs : 1)) break;
      this.#requests += 1;
      const facts = await this.#factsFrom(agent, agent === last?.agent ? leftMs : leftMs / 2);
      const worth = worthOf(facts);
      if (worth > worthOf(best)) best = facts;
      if (worth === final) break;
      // The other agent of the group has the same credentials. After a timeout, it may be faster.
      if (worth >= unreachable) refusedGroup = group;
    }
    return best;
  }

  /** Why no agent has answered. */
  error(): FactsError {
    if (this.#withheld && this.#requests === 0) {
      const message =
        `no agent may receive the pull secrets of the pod: none that is available runs on a node that matches pullSecretNodes ` +
        `(${this.#nodes?.selector}); label such a node, or change the setting`;
      return { code: 'forbidden', message };
    }
    const [shown, more] = [this.#failures.slice(0, maxShown), this.#failures.length - maxShown];
    const reasons = `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
    if (this.#leftMs < leastMs) return { code: 'timeout', message: `no agent answered in time: ${reasons}` };
    if (this.#failures.length === 0)
      return { code: 'unavailable', message: noAgentsHint, hint: noAgentsHint, retryAfterMs: tickMs };
    const hint = 'no agent answered; see archwright status';
    const message = `no agent answered: ${reasons}`;
    return { code: 'unavailable', message, hint, ...(this.#requests === 0 && { retryAfterMs: tickMs }) };
  }

  get #leftMs(): number {
    return this.#signal.aborted ? 0 : this.#deadline - this.#context.clock.monotonic();
  }

  /** The first agents of a group that may get this request. */
  #available(group: readonly AgentAddress[]): readonly AgentAddress[] {
    const available: AgentAddress[] = [];
    for (const agent of group) {
      if (available.length === maxPerGroup) break;
      const problem = this.#context.agents.problemOf(agent.url);
      // An agent's claim about its node does not count: without a known node, it gets no pull secrets.
      const mayReceive = !this.#nodes || (agent.node !== undefined && this.#nodes.has(agent.node));
      if (!mayReceive) this.#withheld = true;
      else if (problem !== undefined) this.#failures.push(`${nameOf(agent)}: ${problem}`);
      else available.push(agent);
    }
    return available;
  }

  async #factsFrom(agent: AgentAddress, limitMs: number): Promise<ImageFacts | undefined> {
    const { agents, requestFacts, log, meters } = this.#context;
    try {
      const facts = await requestFacts(agent.url, this.#request, limitMs, this.#signal);
      meters.attempt('answered');
      return facts;
    } catch (error) {
      const code = error instanceof AgentError ? error.code : 'timeout';
      const isAbandoned = this.#signal.aborted;
      const reason = isAbandoned ? 'no answer yet' : messageOf(error);
      this.#failures.push(`${nameOf(agent)}: ${reason}`);
      meters.attempt(isAbandoned ? 'abandoned' : code);
      if (isAbandoned) return undefined;
      if (agentFails.has(code)) agents.failed(agent.url, reason);
      log.warn({ agent: agent.url, node: agent.node, code, reason }, 'an agent gave no answer');
      return undefined;
    }
  }
}

function nameOf(agent: AgentAddress): string {
  return agent.node ?? new URL(agent.url).host;
}

/** Worth of answers after which another node may have a better one, and of all others. */
const [late, unreachable, refused, final] = [1, 2, 3, 4];

function worthOf(facts: ImageFacts | undefined): number {
  if (facts === undefined) return 0;
  const code = facts.error?.code;
  if (code === 'unauthorized' || code === 'forbidden') return refused;
  if (code === 'unavailable') return unreachable;
  return code === 'timeout' ? late : final;
}
