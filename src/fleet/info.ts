/** What an agent says of itself at `/v1/info`. Nothing of it is trusted. Later versions may send more. */
import { readProblems } from '../credentials/problems.ts';
import { asObject, asText } from '../http/json.ts';
import type { RequestLimit } from '../registry/net/docker-hub-limit.ts';
import { isArchitecture } from '../names/architecture.ts';
import { readExecReport } from '../nodes/exec-report.ts';
import { readNodeReport } from '../nodes/node-report.ts';

export type AgentInfo = NonNullable<ReturnType<typeof readAgentInfo>>;

/** Kubernetes validates node names as DNS subdomains, RFC 1123. */
const nodeName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;

/** @returns `undefined` without a usable fingerprint; a node name that no node can have is dropped */
export function readAgentInfo(value: unknown) {
  const answer = asObject(value) ?? {};
  const fingerprint = asText(answer['credentialFingerprint']) ?? '';
  if (fingerprint === '') return undefined;
  const node = asText(answer['nodeName']) ?? '';
  const architecture = asText(answer['architecture']) ?? '';
  return {
    /** Equal for agents whose nodes have the same credential sources. */
    fingerprint,
    /** Discovery may know better (`discovery.ts`). */
    node: nodeName.test(node) ? node : undefined,
    architecture: isArchitecture(architecture) ? architecture : undefined,
    report: readNodeReport(answer['node']),
    /** Credentials that its node does not use, and why. */
    problems: readProblems(answer['credentialProblems']),
    /** Absent: it does not trace programs. */
    execErrors: readExecReport(answer['execErrors']),
    dockerHub: readLimit(answer['dockerHub']),
  };
}

function readLimit(value: unknown): RequestLimit | undefined {
  const { limit, remaining } = asObject(value) ?? {};
  if (typeof limit !== 'number' || typeof remaining !== 'number') return undefined;
  const isPossible = Number.isSafeInteger(limit) && Number.isSafeInteger(remaining);
  return isPossible && remaining >= 0 && remaining <= limit ? { limit, remaining } : undefined;
}
