/** One request to one agent: `POST /v1/facts`. */
import { toAuths } from '../../credentials/auths.ts';
import type { ImageFacts, ImageRequest } from '../../images/facts/facts.ts';
import type { AgentConnection } from './connection.ts';
import { factsOfAnswer } from './facts-response.ts';

export interface RequestFactsOptions {
  readonly signal: AbortSignal;
  /** Milliseconds that the agent has for its answer. */
  readonly deadlineMs: number;
}

/** One image's facts have some hundred bytes; with as many platforms as `readFacts` accepts they have some 50 KiB. */
const maxAnswerBytes = 256 * 1024;
const leastDeadlineMs = 10;

/**
 * Asks an agent. The pod's pull credentials go with the request, and nowhere else.
 * @param url the agent's
 * @throws AgentError
 */
export async function requestFacts(
  connection: AgentConnection,
  url: string,
  request: ImageRequest,
  { signal, deadlineMs }: RequestFactsOptions,
): Promise<ImageFacts> {
  const { image, pullPolicy, pullCredentials, serviceAccount } = request;
  const body = {
    images: [{ image, pullPolicy }],
    ...(pullCredentials.length > 0 && { auths: toAuths(pullCredentials) }),
    ...(serviceAccount && { serviceAccount }),
    deadlineMs: Math.max(leastDeadlineMs, Math.floor(deadlineMs)),
  };
  const answer = await connection.json(url, '/v1/facts', { body, signal, maxBytes: maxAnswerBytes });
  return factsOfAnswer(answer, image, url);
}
