/** The answers of agents, which are checked: image facts, one in a line, and `/v1/info`. */
import type { ImageFacts } from '../../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../../images/facts/wire.ts';
import type { SourceProblem } from '../../credentials/credential.ts';
import { readProblems } from '../../credentials/problems.ts';
import { readNodeReport, type NodeReport } from '../../nodes/node-report.ts';
import { AgentError } from './connection.ts';

/**
 * The facts in one line of an answer.
 * @throws AgentError `bad-answer`
 */
export function factsOfAnswer(line: string, url: string): ImageFacts {
  const facts = readLine(line);
  if (facts instanceof InvalidFacts) throw new AgentError('bad-answer', url, facts.message);
  if (facts === undefined) throw new AgentError('bad-answer', url, 'a line of the answer is not JSON');
  return facts;
}

/** The facts in one line of the facts that an agent shares; `undefined` if they are invalid or not shared. */
export function factsOfLine(line: string): ImageFacts | undefined {
  const facts = readLine(line);
  if (facts === undefined || facts instanceof InvalidFacts) return undefined;
  const isOfPod = facts.credentialSource === 'pull-secret' || facts.credentialSource === 'service-account';
  return isOfPod ? undefined : facts;
}

/** @returns `undefined` if it is not JSON */
function readLine(line: string): ImageFacts | InvalidFacts | undefined {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return undefined;
  }
  try {
    return readFacts(json);
  } catch (error) {
    if (error instanceof InvalidFacts) return error;
    throw error;
  }
}

/** The part of `/v1/info` that is used; agents of later versions may send more. */
export interface AgentInfo {
  /** Equal for agents whose nodes have the same credential sources. */
  readonly fingerprint: string;
  /** Name of its node; discovery may know better (`endpointslices.ts`). */
  readonly node?: string;
  /** `kubernetes.io/arch` of its node. */
  readonly architecture?: string;
  /** Runtime, CPU and kernel of its node. */
  readonly report?: NodeReport;
  /** Credentials that its node does not use, and why. */
  readonly problems?: readonly SourceProblem[];
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
  const {
    credentialFingerprint,
    nodeName: node,
    architecture,
    node: own,
    credentialProblems,
  } = answer as Readonly<Record<string, unknown>>;
  const fingerprint = text(credentialFingerprint, maxFingerprintLength);
  if (fingerprint === undefined) return undefined;
  const says = text(architecture, maxArchitectureLength);
  const report = readNodeReport(own);
  const problems = readProblems(credentialProblems);
  return {
    fingerprint,
    ...(typeof node === 'string' && nodeName.test(node) && { node }),
    ...(says !== undefined && { architecture: says }),
    ...(report && { report }),
    ...(problems.length > 0 && { problems }),
  };
}

function text(value: unknown, maxLength: number): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxLength ? value : undefined;
}
