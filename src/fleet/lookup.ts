/**
 * One lookup through the agents, one request after the other. The credential group of the repository's owner
 * comes first. Its second agent is asked if the first fails, is silent, or has not answered after half of the
 * time that is left. Another group follows if the registry refuses the first one or cannot be reached from
 * there: other nodes may have other credentials and another network.
 *
 * A lookup costs a bounded number of requests and a bounded time, and always ends in facts: without an answer,
 * they hold an error that lists the agents and their failures.
 */
import type { Clock } from '../async/clock.ts';
import { limited, unlessAborted } from '../async/wait.ts';
import { failedFacts, type FactsError, type ImageFacts, type ImageRequest } from '../images/facts/facts.ts';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import type { Agents } from './agents.ts';
import type { Batches } from './batches.ts';
import { AgentError, type AgentErrorCode } from './connection.ts';
import type { AgentAddress } from './discovery.ts';
import type { FleetMeters } from './metrics.ts';

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
  readonly batches: Batches;
  readonly meters: FleetMeters;
  /** Default: all nodes. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Limit of one lookup, milliseconds. */
  readonly timeoutMs: number;
  /** Called with every answer of an agent, failures of its registry included. */
  readonly onAnswer: (request: ImageRequest, agent: AgentAddress, facts: ImageFacts) => void;
}

/** If the owner and the next agent fail, a third is unlikely to help within the time. */
const maxPerGroup = 2;
/** Bounds what one pod can cause, however many credential groups a cluster has. */
const maxRequests = 8;
/** No further request without time for an answer, which takes a few round trips to a registry. */
const leastMs = 300;
/** The message goes into events, and a cluster may have thousands of agents. */
const maxShown = 5;

/** Codes after which another node may have access. */
const askElsewhere: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'unavailable']);
/** Failures of the agent rather than of the request. */
const backOffCodes: ReadonlySet<AgentErrorCode> = new Set(['unreachable', 'lost', 'refused', 'overloaded']);

/** It starts when it is made. */
export class Lookup {
  readonly #context: LookupContext;
  readonly #request: ImageRequest;
  readonly #signal: AbortSignal;
  readonly #deadline: number;
  readonly #failures: string[] = [];
  #requests = 0;
  /** Whether an agent was left out because of `pullSecretNodes`. */
  #withheld = false;
  /** Milliseconds until the first agent that is backed off gets requests again. */
  #soonestMs = Number.POSITIVE_INFINITY;
  /** The answer of an agent whose registry was too slow. */
  #late: ImageFacts | undefined;

  constructor(context: LookupContext, request: ImageRequest, signal: AbortSignal) {
    this.#context = context;
    this.#request = request;
    this.#signal = signal;
    this.#deadline = context.clock.monotonic() + context.timeoutMs;
  }

  /** @param groups agents in the order of requests */
  async run(groups: readonly (readonly AgentAddress[])[]): Promise<ImageFacts> {
    const { meters, pullSecretNodes, clock } = this.#context;
    if (pullSecretNodes && this.#request.pullCredentials.length > 0)
      await limited(this.#leftMs, this.#signal, pullSecretNodes.ready, clock.sleep);
    const available = groups.map((group) => this.#available(group)).filter(({ length }) => length > 0);
    let refusal: ImageFacts | undefined;
    for (const [index, agents] of available.entries()) {
      if (refusal) meters.passOn();
      const facts = await this.#askGroup(agents, index === available.length - 1);
      if (facts && !askElsewhere.has(facts.error?.code ?? '')) {
        meters.lookup('answered');
        return facts;
      }
      // A refusal is more informative than a registry that a node cannot reach; among equals the first stands.
      if (refusal === undefined || refusal.error?.code === 'unavailable') refusal = facts ?? refusal;
    }
    meters.lookup(refusal ? 'answered' : 'unanswered');
    return refusal ?? this.#unanswered();
  }

  get #leftMs(): number {
    return this.#signal.aborted ? 0 : this.#deadline - this.#context.clock.monotonic();
  }

  /** The first agents of a group. Those that did not answer their last request come last. */
  #available(group: readonly AgentAddress[]): readonly AgentAddress[] {
    const { agents } = this.#context;
    const [answering, others]: [AgentAddress[], AgentAddress[]] = [[], []];
    for (const agent of group) {
      if (answering.length === maxPerGroup) break;
      const backedOffMs = agents.backedOffMs(agent.url);
      if (!this.#mayReceiveRequest(agent)) this.#withheld = true;
      else if (backedOffMs > 0) {
        this.#soonestMs = Math.min(this.#soonestMs, backedOffMs);
        this.#failures.push(`${nameOf(agent)}: backed off after failures`);
      } else (agents.stateOf(agent.url) === 'ready' ? answering : others).push(agent);
    }
    return [...answering, ...others].slice(0, maxPerGroup);
  }

  /** An agent's claim about its node does not count: without a known node, it gets no pull secrets. */
  #mayReceiveRequest({ node }: AgentAddress): boolean {
    const { pullSecretNodes } = this.#context;
    if (pullSecretNodes === undefined || this.#request.pullCredentials.length === 0) return true;
    return node !== undefined && pullSecretNodes.has(node);
  }

  /** @param isLast no group follows, which would need time, too */
  async #askGroup(agents: readonly AgentAddress[], isLast: boolean): Promise<ImageFacts | undefined> {
    for (const [index, agent] of agents.entries()) {
      const leftMs = this.#leftMs;
      if (this.#requests === maxRequests || leftMs < (this.#requests > 0 ? leastMs : 1)) break;
      this.#requests += 1;
      const facts = await this.#ask(agent, isLast && index === agents.length - 1 ? leftMs : leftMs / 2);
      if (facts && facts.error?.code !== 'timeout') return facts;
      // The registry was too slow for this agent; another agent may find it faster.
      this.#late = facts ?? this.#late;
    }
    return undefined;
  }

  async #ask(agent: AgentAddress, limitMs: number): Promise<ImageFacts | undefined> {
    const { agents, batches, clock, log, meters, onAnswer } = this.#context;
    const started = clock.monotonic();
    const asking = batches.lookup(agent.url, this.#request, started + limitMs);
    try {
      const wait = (signal: AbortSignal) => unlessAborted(asking, signal);
      const facts = await limited(limitMs, this.#signal, wait, clock.sleep);
      agents.answered(agent.url);
      meters.answered(clock.monotonic() - started);
      meters.attempt('answered');
      onAnswer(this.#request, agent, facts);
      return facts;
    } catch (error) {
      const known =
        error instanceof AgentError ? error : new AgentError('timeout', agent.url, messageOf(error));
      const { code, message, temporary } = known;
      this.#failures.push(`${nameOf(agent)}: ${this.#signal.aborted ? 'no answer yet' : message}`);
      meters.attempt(this.#signal.aborted ? 'abandoned' : code);
      if (this.#signal.aborted) return undefined;
      if (backOffCodes.has(code)) agents.failed(agent.url);
      log.warn({ agent: agent.url, node: agent.node, code, reason: message }, 'an agent gave no answer');
      // The other agents of the group would reject the request too.
      return temporary ? undefined : this.#failure({ code: 'unavailable', message });
    }
  }

  /** The facts if no group answered. */
  #unanswered(): ImageFacts {
    if (this.#late) return this.#late;
    if (this.#withheld && this.#requests === 0) {
      const { selector = '' } = this.#context.pullSecretNodes ?? {};
      const message =
        `no agent may receive the pull secrets of the pod: none that is available runs on a node that matches pullSecretNodes ` +
        `(${selector}); label such a node, or change the setting`;
      return this.#failure({ code: 'forbidden', message });
    }
    const [shown, more] = [this.#failures.slice(0, maxShown), this.#failures.length - maxShown];
    const reasons = `${shown.join('; ') || 'no request was sent'}${more > 0 ? `; and ${more} more` : ''}`;
    if (this.#leftMs < leastMs)
      return this.#failure({ code: 'timeout', message: `no agent answered in time: ${reasons}` });
    const mayRetry = this.#requests === 0 && Number.isFinite(this.#soonestMs);
    return this.#failure({
      code: 'unavailable',
      message: `no agent answered: ${reasons}`,
      hint: 'no agent answered; see archwright status',
      ...(mayRetry && { retryAfterMs: Math.ceil(this.#soonestMs) }),
    });
  }

  #failure(error: FactsError): ImageFacts {
    return failedFacts(this.#request.image, error, this.#context.clock.now());
  }
}

function nameOf(agent: AgentAddress): string {
  return agent.node ?? new URL(agent.url).host;
}
