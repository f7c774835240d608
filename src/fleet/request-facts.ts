/**
 * One request for the facts of an image to one agent. An agent gets a limited number of requests at a time, and
 * no namespace can use them up (`fair-semaphore.ts`).
 */
import type { Clock } from '../async/clock.ts';
import { FairSemaphores } from '../async/fair-semaphore.ts';
import { limited } from '../async/wait.ts';
import { toAuths } from '../credentials/auths.ts';
import type { ImageFacts, ImageRequest } from '../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../images/facts/wire.ts';
import { AgentError, maxLineBytes, type AgentConnection } from './connection.ts';

/**
 * Fewer requests than connections to one agent (32), so that `/v1/info` and probes need not wait. As many may
 * wait as the cache has lookups.
 */
const limitsPerAgent = { places: 28, maxWaiting: 2048 };
/** The agent answers this much before time is up, so that its answer still arrives. */
const answerMarginMs = 100;

export type RequestFacts = ReturnType<typeof createRequestFacts>;

export function createRequestFacts(connection: AgentConnection, clock: Clock) {
  const places = new FairSemaphores(limitsPerAgent);

  /**
   * The pod's pull credentials go only with this request.
   * @param url the agent's
   * @param limitMs includes waiting for other requests to this agent
   * @throws AgentError; if the request was not sent, Overloaded or the reason of the signal or the limit
   */
  return async (url: string, request: ImageRequest, limitMs: number, signal: AbortSignal) => {
    const endsAt = clock.monotonic() + limitMs - answerMarginMs;
    const send = async (within: AbortSignal): Promise<unknown> => {
      const leave = await places.of(url).enter(request.namespace ?? '', within);
      const deadlineMs = Math.max(1, Math.floor(endsAt - clock.monotonic()));
      const call = { body: bodyOf(request, deadlineMs), signal: within, maxBytes: maxLineBytes };
      return await connection.json(url, '/v1/facts', call).finally(leave);
    };
    return factsIn(await limited(limitMs, signal, send, clock.sleep), request, url);
  };
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

/** @throws AgentError `bad-answer` unless they are facts of this image */
function factsIn(answer: unknown, { image, reference }: ImageRequest, url: string): ImageFacts {
  try {
    const facts = readFacts(answer);
    const { digest = facts.digest } = reference;
    if (facts.image === image && (facts.digest ?? digest) === digest) return facts;
  } catch (error) {
    if (error instanceof InvalidFacts) throw new AgentError('bad-answer', url, error.message);
    throw error;
  }
  throw new AgentError('bad-answer', url, 'the answer is about another image');
}
