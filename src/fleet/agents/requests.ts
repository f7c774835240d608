/** What agents are asked: facts of one image, and `/v1/info`. Their answers are checked. */
import { toAuths } from '../../credentials/auths.ts';
import type { ImageFacts, ImageRequest } from '../../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../../images/facts/wire.ts';
import { AgentError, type AgentConnection } from './connection.ts';

/** One image's facts have some hundred bytes; with as many platforms as `readFacts` accepts they have some 50 KiB. */
const maxAnswerBytes = 256 * 1024;
const leastDeadlineMs = 10;

/**
 * Asks an agent. The pod's pull credentials go with the request, and nowhere else.
 * @param url the agent's
 * @param deadlineMs milliseconds that the agent has for its answer
 * @throws AgentError
 */
export async function requestFacts(
  connection: AgentConnection,
  url: string,
  { image, pullPolicy, pullCredentials, serviceAccount }: ImageRequest,
  { signal, deadlineMs }: { readonly signal: AbortSignal; readonly deadlineMs: number },
): Promise<ImageFacts> {
  const body = {
    images: [{ image, pullPolicy }],
    ...(pullCredentials.length > 0 && { auths: toAuths(pullCredentials) }),
    ...(serviceAccount && { serviceAccount }),
    deadlineMs: Math.max(leastDeadlineMs, Math.floor(deadlineMs)),
  };
  const answer = await connection.json(url, '/v1/facts', { body, signal, maxBytes: maxAnswerBytes });
  return factsOfAnswer(answer, image, url);
}

/**
 * The facts in the answer to a request for one image.
 * @param image as requested; facts of another image are no answer
 * @throws AgentError `bad-answer`
 */
export function factsOfAnswer(answer: unknown, image: string, url: string): ImageFacts {
  const bad = (message: string): AgentError => new AgentError('bad-answer', url, message);
  const results =
    typeof answer === 'object' && answer !== null && 'results' in answer ? answer.results : undefined;
  if (!Array.isArray(results) || results.length !== 1)
    throw bad('the answer has not one result for one image');
  const facts = read(results[0]);
  if (facts instanceof InvalidFacts) throw bad(facts.message);
  if (facts.image !== image) throw bad('the result is about another image');
  return facts;
}

/** The facts in one line of the facts that an agent shares; `undefined` if they are invalid or not shared. */
export function factsOfLine(line: string): ImageFacts | undefined {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return undefined;
  }
  const facts = read(json);
  if (facts instanceof InvalidFacts) return undefined;
  const isOfPod = facts.credentialSource === 'pull-secret' || facts.credentialSource === 'service-account';
  return isOfPod ? undefined : facts;
}

function read(value: unknown): ImageFacts | InvalidFacts {
  try {
    return readFacts(value);
  } catch (error) {
    if (error instanceof InvalidFacts) return error;
    throw error;
  }
}

/** What an agent says of itself at `/v1/info`, as far as it is needed; an agent of a later version may say more. */
export interface AgentInfo {
  /** Equal for agents whose nodes have the same credential sources. */
  readonly fingerprint: string;
  /** Name of its node; discovery may know better (`endpointslices.ts`). */
  readonly node?: string;
  /** `kubernetes.io/arch` of its node. */
  readonly architecture?: string;
}

/** A fingerprint is a hash; this is room for a longer one of a later version. */
const maxFingerprintLength = 200;
/** Kubernetes validates node names as DNS subdomains, RFC 1123. */
const nodeName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;
/** Label values have 63 characters at most, and an architecture is one. */
const maxArchitectureLength = 63;

/** @returns `undefined` without a usable fingerprint; a node name that no node can have is left out */
export function readAgentInfo(answer: unknown): AgentInfo | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { credentialFingerprint, nodeName: node, architecture } = answer as Readonly<Record<string, unknown>>;
  const fingerprint = text(credentialFingerprint, maxFingerprintLength);
  if (fingerprint === undefined) return undefined;
  const says = text(architecture, maxArchitectureLength);
  return {
    fingerprint,
    ...(typeof node === 'string' && nodeName.test(node) && { node }),
    ...(says !== undefined && { architecture: says }),
  };
}

function text(value: unknown, maxLength: number): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxLength ? value : undefined;
}
