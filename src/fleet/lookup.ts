/**
 * One lookup through the agents, one request after the other. The credential group of the repository's owner
 * comes first. Its second agent follows if the first fails, is silent, or takes half of the time that is left.
 * Another group follows if the registry refuses the first one or cannot be reached from there (other nodes may
 * have other credentials and another network), or if its agents do not answer. After two timeouts of a registry,
 * no agent follows. The requests and their time are bounded. If all fail, the error lists the agents and reasons.
 */
import type { Clock } from '../async/clock.ts';
import { Overloaded, type FairSemaphores } from '../async/fair-semaphore.ts';
import { limited } from '../async/wait.ts';
import { toAuths } from '../credentials/auths.ts';
import { noAgentsHint, type FactsError, type ImageFacts, type ImageRequest } from '../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../images/facts/wire.ts';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import { counter } from '../telemetry/metrics.ts';
import { tickMs, type Agents } from './agents.ts';
import { AgentError, agentErrorCodes, agentPaths, maxLineBytes, type AgentConnection } from './connection.ts';
import type { AgentAddress } from './discovery.ts';

export const attemptOutcomes = ['answered', 'abandoned', ...agentErrorCodes] as const;

export const attempts = counter(
  'archwright_fleet_attempts_total',
  'Requests to single agents. `abandoned`: the caller gave up.',
  { outcome: attemptOutcomes },
);

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
  readonly connection: AgentConnection;
  /** Places for requests to each agent; no namespace can use them up (`fair-semaphore.ts`). */
  readonly places: FairSemaphores;
  /** Counts a request to an agent. */
  readonly attempt: (outcome: (typeof attemptOutcomes)[number]) => void;
  /** Default: all nodes. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Below the connections to one agent (40), so that `/v1/info` need not wait. The cache has as many lookups. */
export const limitsPerAgent = { places: 36, maxWaiting: 2048 };
/** Just less than the cache gives a lookup (15 s), so that the answer names the agents that failed. */
const timeoutMs = 14_000;
/** The agent answers this much before time is up, so that its answer still arrives. */
const answerMarginMs = 100;
/** If the owner and the next agent fail, a third is unlikely to help within the time. */
const maxPerGroup = 2;
/** Bounds what one pod can cause, however many credential groups a cluster has. */
const maxRequests = 8;
/** A registry that is too slow for two agents is slow for all. These keep waiting for its answer. */
const maxTimeouts = 2;
/** No further request without time for an answer, which takes a few round trips to a registry. */
const leastMs = 300;
/** The message goes into events, and a cluster may have thousands of agents. */
const maxShown = 5;

/**
 * The best answer of these agents, or why none has answered.
 * @param groups agents with equal credentials, in the order of requests
 * @throws Overloaded if too many requests wait for the agent
 */
export async function lookUp(
  context: LookupContext,
  request: ImageRequest,
  groups: Iterable<readonly AgentAddress[]>,
  signal: AbortSignal,
): Promise<ImageFacts | FactsError> {
  const { agents, connection, places, attempt, pullSecretNodes, clock, log } = context;
  const deadline = clock.monotonic() + timeoutMs;
  const leftMs = (): number => (signal.aborted ? 0 : deadline - clock.monotonic());
  const nodes = request.pullCredentials.length > 0 ? pullSecretNodes : undefined;
  if (nodes) await limited(leftMs(), signal, nodes.ready, clock.sleep);

  const failures: string[] = [];
  let withheld = 0;
  const isAvailable = (agent: AgentAddress): boolean => {
    const { node, url } = agent;
    // An agent's claim about its node does not count: without a known node, it gets no pull secrets.
    const mayReceive = !nodes || (node !== undefined && nodes.has(node));
    const problem = agents.problemOf(url);
    if (!mayReceive) withheld += 1;
    else if (problem !== undefined) failures.push(`${nameOf(agent)}: ${problem}`);
    return mayReceive && problem === undefined;
  };
  /** The pod's pull credentials go only with this request. @param limitMs includes waiting for a place */
  async function send(url: string, limitMs: number, within: AbortSignal): Promise<ImageFacts> {
    const endsAt = clock.monotonic() + limitMs - answerMarginMs;
    const leave = await places.get(url).enter(request.namespace ?? '', within);
    const body = bodyOf(request, Math.max(1, Math.floor(endsAt - clock.monotonic())));
    const call = { body, signal: within, maxBytes: maxLineBytes };
    return factsIn(await connection.json(url, agentPaths.facts, call).finally(leave), request);
  }

  async function factsFrom(agent: AgentAddress, limitMs: number): Promise<ImageFacts | undefined> {
    const { url, node } = agent;
    try {
      const facts = await limited(limitMs, signal, (within) => send(url, limitMs, within), clock.sleep);
      attempt('answered');
      return facts;
    } catch (error) {
      // No fault of the agent: it got no request.
      if (error instanceof Overloaded) throw error;
      const isInvalid = error instanceof InvalidFacts;
      const code = error instanceof AgentError ? error.code : isInvalid ? 'bad-answer' : 'timeout';
      const reason = signal.aborted ? 'no answer yet' : messageOf(error);
      failures.push(`${nameOf(agent)}: ${reason}`);
      attempt(signal.aborted ? 'abandoned' : code);
      if (signal.aborted) return undefined;
      // Other failures are the request's.
      if (code === 'unreachable' || code === 'failed') agents.failed(url, reason);
      log.warn({ agent: url, node, code, reason }, 'an agent gave no answer');
      return undefined;
    }
  }

  const plan = [...groups].map((group) => group.filter(isAvailable).slice(0, maxPerGroup));
  const last = plan.flat().at(-1);
  let [requests, timeouts] = [0, 0];
  let best: ImageFacts | undefined;
  for (const group of plan) {
    for (const agent of group) {
      if (requests === maxRequests || leftMs() < (requests > 0 ? leastMs : 1)) break;
      requests += 1;
      const facts = await factsFrom(agent, agent === last ? leftMs() : leftMs() / 2);
      const worth = worthOf(facts);
      if (worth > worthOf(best)) best = facts;
      if (facts && worth === final) return facts;
      // The other agent of the group has the same credentials. After a timeout, it may be faster.
      if (worth >= unreachable) break;
      timeouts += worth === late ? 1 : 0;
      if (best && timeouts === maxTimeouts) return best;
    }
  }
  if (best) return best;
  if (nodes && withheld > 0 && requests === 0) return noAgentFor(nodes);
  return noAnswer(failures, leftMs(), requests);
}

function bodyOf(request: ImageRequest, deadlineMs: number): unknown {
  const { image, maxAgeMs, pullCredentials, namespace, serviceAccount } = request;
  return {
    // JSON has no Infinity: without a number, any age will do.
    images: [Number.isFinite(maxAgeMs) ? { image, maxAgeMs } : { image }],
    namespace,
    ...(pullCredentials.length > 0 && { auths: toAuths(pullCredentials) }),
    serviceAccount,
    deadlineMs,
  };
}

/** @throws InvalidFacts unless they are facts of this image */
function factsIn(answer: unknown, { image, reference }: ImageRequest): ImageFacts {
  const facts = readFacts(answer);
  const { digest = facts.digest } = reference;
  if (facts.image === image && (facts.digest ?? digest) === digest) return facts;
  throw new InvalidFacts('', 'are about another image');
}

function noAgentFor({ selector }: PullSecretNodes): FactsError {
  const message =
    `no agent may receive the pull secrets of the pod: none that answers runs on a node that matches pullSecretNodes ` +
    `(${selector}); label such a node, or change the setting`;
  return { code: 'forbidden', message };
}

function noAnswer(failures: readonly string[], leftMs: number, requests: number): FactsError {
  const [shown, more] = [failures.slice(0, maxShown), failures.length - maxShown];
  const reasons = `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
  if (leftMs < leastMs) return { code: 'timeout', message: `no agent answered in time: ${reasons}` };
  const isNoneKnown = failures.length === 0;
  const hint = isNoneKnown ? noAgentsHint : 'no agent answered; see archwright status';
  const message = isNoneKnown ? noAgentsHint : `no agent answered: ${reasons}`;
  return { code: 'unavailable', message, hint, ...(requests === 0 && { retryAfterMs: tickMs }) };
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
