/**
 * All log lines of archwright's containers, read from the node's disk, so that deleted pods count too; and the requests that the API server
 * refused, from its audit log, because not every refusal is logged.
 */
import { closeSync, globSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { namespace } from './release.ts';

export interface Followed {
  /** All lines so far, each behind the path of its file. */
  text(): string;
  stop(): void;
}

const pollMs = 250;
const chunkBytes = 1024 * 1024;

export function followLogs(): Followed {
  const seen = new Map<string, number>();
  const lines: string[] = [];
  const over = new AbortController();
  const buffer = Buffer.alloc(chunkBytes);
  const look = (): void => {
    for (const path of globSync(`/var/log/pods/${namespace}_*/*/*.log`)) {
      let descriptor;
      try {
        descriptor = openSync(path, 'r');
      } catch {
        continue;
      }
      const from = seen.get(path) ?? 0;
      const size = readSync(descriptor, buffer, 0, buffer.length, from);
      closeSync(descriptor);
      const end = buffer.subarray(0, size).lastIndexOf('\n') + 1;
      seen.set(path, from + end);
      const label = path.replace(/^\/var\/log\/pods\/[^_]+_([^_]+)_[^/]+\//, '$1/');
      for (const line of buffer.toString('utf8', 0, end).split('\n'))
        if (line !== '') lines.push(`${label}: ${line}`);
    }
  };
  void (async () => {
    while (!over.signal.aborted) {
      look();
      await pause(pollMs);
    }
  })();
  return {
    text: () => (look(), lines.join('\n')),
    stop: () => over.abort(),
  };
}

const auditFile = '/tmp/audit.log';
const policyFile = '/tmp/audit-policy.json';

/** Flags for an API server with an audit log of archwright's service accounts. */
export function auditFlags(): readonly string[] {
  const ours = {
    level: 'Metadata',
    userGroups: [`system:serviceaccounts:${namespace}`],
    omitStages: ['RequestReceived'],
  };
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [ours, { level: 'None' }] };
  writeFileSync(policyFile, JSON.stringify(policy));
  return [`--audit-policy-file=${policyFile}`, `--audit-log-path=${auditFile}`];
}

interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly requestURI: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number; readonly message?: string };
}

function events(): readonly AuditEvent[] {
  // The last line may be incomplete.
  const lines = readFileSync(auditFile, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as AuditEvent);
}

/** Requests that were refused for missing rights, each once. */
export function refused(): readonly string[] {
  const found = new Set<string>();
  for (const { verb, user, requestURI, responseStatus } of events()) {
    if (responseStatus?.code === 403)
      found.add(`${user.username}: ${verb} ${requestURI}: ${responseStatus.message ?? ''}`);
  }
  return [...found];
}

export interface AllowedRequest {
  readonly user: string;
  readonly verb: string;
  /** As roles name it: `pods/eviction`. */
  readonly resource: string;
}

/** Requests that were allowed. */
export function allowedRequests(): readonly AllowedRequest[] {
  return events().flatMap(({ verb, user, objectRef, responseStatus }) => {
    if (objectRef?.resource === undefined || responseStatus?.code === 403) return [];
    const { resource, subresource } = objectRef;
    return [{ user: user.username, verb, resource: subresource ? `${resource}/${subresource}` : resource }];
  });
}
