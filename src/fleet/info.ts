/** What an agent says of itself at `/v1/info`. Nothing of it is trusted. Later versions may send more. */
import type { SourceProblem } from '../credentials/credential.ts';
import { readProblems } from '../credentials/problems.ts';
import { asObject, asText } from '../http/json.ts';
import type { RequestLimit } from '../registry/net/docker-hub-limit.ts';
import { isArchitecture } from '../names/architecture.ts';
import { readExecReport, type ExecReport } from '../nodes/exec-report.ts';
import { readNodeReport, type NodeReport } from '../nodes/node-report.ts';

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
  /** Programs in containers that its node could not execute. Absent: it does not trace them. */
  readonly execErrors?: ExecReport;
  /** What is left of the requests that Docker Hub allows its node. */
  readonly dockerHub?: RequestLimit;
}

/** Kubernetes validates node names as DNS subdomains, RFC 1123. */
const nodeName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;
/** @returns `undefined` without a usable fingerprint; a node name that no node can have is dropped */
export function readAgentInfo(value: unknown): AgentInfo | undefined {
  const answer = asObject(value) ?? {};
  const fingerprint = asText(answer['credentialFingerprint']) ?? '';
  if (fingerprint === '') return undefined;
  const node = asText(answer['nodeName']) ?? '';
  const architecture = asText(answer['architecture']) ?? '';
  const report = readNodeReport(answer['node']);
  const problems = readProblems(answer['credentialProblems']);
  const execErrors = readExecReport(answer['execErrors']);
  const dockerHub = readLimit(answer['dockerHub']);
  return {
    fingerprint,
    ...(nodeName.test(node) && { node }),
    ...(isArchitecture(architecture) && { architecture }),
    ...(report && { report }),
    ...(problems.length > 0 && { problems }),
    ...(execErrors && { execErrors }),
    ...(dockerHub && { dockerHub }),
  };
}

function readLimit(value: unknown): RequestLimit | undefined {
  const { limit, remaining } = asObject(value) ?? {};
  if (typeof limit !== 'number' || typeof remaining !== 'number') return undefined;
  const isPossible = Number.isSafeInteger(limit) && Number.isSafeInteger(remaining);
  return isPossible && remaining >= 0 && remaining <= limit ? { limit, remaining } : undefined;
}
