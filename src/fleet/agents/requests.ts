/** The answers of agents, which are checked: image facts, one in a line, and `/v1/info`. */
import { asObject, parseJson } from '../../http/json.ts';
import { isOfPod, type ImageFacts } from '../../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../../images/facts/wire.ts';
import type { SourceProblem } from '../../credentials/credential.ts';
import { readProblems } from '../../credentials/problems.ts';
import { readNodeReport, type NodeReport } from '../../nodes/node-report.ts';
import { AgentError } from './connection.ts';

/** The facts in one line of an answer. @throws AgentError `bad-answer` */
export function factsOfAnswer(line: string, url: string): ImageFacts {
  const json = parseJson(line);
  if (json === undefined) throw new AgentError('bad-answer', url, 'a line of the answer is not JSON');
  try {
    return readFacts(json);
  } catch (error) {
    if (error instanceof InvalidFacts) throw new AgentError('bad-answer', url, error.message);
    throw error;
  }
}

/** The facts in one line of the facts that an agent shares; `undefined` if they are invalid or not shared. */
export function factsOfLine(line: string): ImageFacts | undefined {
  try {
    const facts = factsOfAnswer(line, '');
    return isOfPod(facts) ? undefined : facts;
  } catch (error) {
    if (error instanceof AgentError) return undefined;
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
  const fields = asObject(answer) ?? {};
  const { credentialFingerprint, nodeName: node, architecture, node: own, credentialProblems } = fields;
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
