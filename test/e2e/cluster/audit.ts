/** The audit log of an API server: requests, users and refusals. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly requestURI: string;
  readonly requestReceivedTimestamp: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number; readonly message?: string };
}

/** @param whose `users` or `userGroups` to log */
export function auditLog(directory: string, whose: object) {
  const policyFile = join(directory, 'audit-policy.json');
  const log = join(directory, 'audit.log');
  const rules = [{ level: 'Metadata', ...whose }, { level: 'None' }];
  const omitStages = ['RequestReceived'];
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages, rules };
  writeFileSync(policyFile, JSON.stringify(policy));
  return {
    flags: [`--audit-policy-file=${policyFile}`, `--audit-log-path=${log}`],
    events: (): readonly AuditEvent[] => {
      // The last line may be incomplete.
      const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as AuditEvent);
    },
  };
}
