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

export type AuditLog = ReturnType<typeof auditLog>;

/** @param selector fields of the rule: `users` or `userGroups` to log, and `omitStages` */
export function auditLog(directory: string, selector: object) {
  const policyFile = join(directory, 'audit-policy.json');
  const log = join(directory, 'audit.log');
  const rules = [{ level: 'Metadata', omitStages: ['RequestReceived'], ...selector }, { level: 'None' }];
  writeFileSync(policyFile, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules }));
  // The API server creates it with the first request.
  writeFileSync(log, '');
  return {
    flags: [`--audit-policy-file=${policyFile}`, `--audit-log-path=${log}`],
    events: (): readonly AuditEvent[] => {
      // The last line may be incomplete.
      const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as AuditEvent);
    },
  };
}
