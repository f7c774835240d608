/** Cost of a burst: CPU of every process, and API requests by client. */
import { readFile } from 'node:fs/promises';
import { auditLog, type AuditLog } from '../../test/e2e/cluster/control-plane/audit.ts';

/** USER_HZ, which Linux fixes at 100 for user space. */
const ticksPerSecond = 100;

/** CPU of a process so far, with that of its threads, milliseconds. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
  // The name comes first and may contain parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [fields[11], fields[12]].map(Number);
  return (((user ?? 0) + (system ?? 0)) * 1000) / ticksPerSecond;
}

/** A request of archwright in the API server's audit log. */
export interface AuditedRequest {
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
}

/** An audit log of archwright's requests only, because each record costs time. */
export function auditOfArchwright(directory: string) {
  const users = ['archwright-webhook', 'archwright-controller', 'archwright-report'];
  // A watch counts when it ends.
  return auditLog(directory, { users, omitStages: ['RequestReceived', 'ResponseStarted'] });
}

/** @returns a function that reads the requests since this call */
export function requestsFromNow(audit: AuditLog): () => readonly AuditedRequest[] {
  const before = audit.events().length;
  return () =>
    audit
      .events()
      .slice(before)
      .map(({ verb, user, objectRef }) => {
        const resource = [objectRef?.resource ?? '', objectRef?.subresource].filter(Boolean).join('/');
        return { user: user.username, verb, resource };
      });
}
