/** What an agent says: image facts, one in a line, and `/v1/info`. Nothing of it is trusted. */
import { parseJson } from '../http/json.ts';
import type { ImageFacts } from '../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../images/facts/wire.ts';
import type { SourceProblem } from '../credentials/credential.ts';
import { readProblems } from '../credentials/problems.ts';
import { isRecord } from '../names/values.ts';
import { readNodeReport, type NodeReport } from '../nodes/node-report.ts';
import { AgentError } from './connection.ts';

/** The facts in one line of an answer. @throws AgentError `bad-answer` */
export function factsOfLine(line: string, url: string): ImageFacts {
  try {
    return readFacts(parseJson(line));
  } catch (error) {
    if (error instanceof InvalidFacts) throw new AgentError('bad-answer', url, error.message);
    throw error;
  }
}

/** The part of `/v1/info` that is used; agents of later versions may send more. */
export interface AgentInfo {
  /** Equal for agents whose nodes have the same credential sources. */
  readonly fingerprint: string;
  /** Name of its node; discovery may know better (`discovery.ts`). */
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
  if (!isRecord(answer)) return undefined;
  const fingerprint = text(answer['credentialFingerprint'], maxFingerprintLength);
  if (fingerprint === undefined) return undefined;
  const node = answer['nodeName'];
  const architecture = text(answer['architecture'], maxArchitectureLength);
  const report = readNodeReport(answer['node']);
  const problems = readProblems(answer['credentialProblems']);
  return {
    fingerprint,
    ...(typeof node === 'string' && nodeName.test(node) && { node }),
    ...(architecture !== undefined && { architecture }),
    ...(report && { report }),
    ...(problems.length > 0 && { problems }),
  };
}

function text(value: unknown, maxLength: number): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxLength ? value : undefined;
}
