/** Cost of a burst: CPU of every process, and API requests by client. */
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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

/** Flags for an API server audit of archwright's requests only, because each record costs time. */
export async function auditFlags(directory: string): Promise<readonly string[]> {
  const policy = join(directory, 'audit.yaml');
  await writeFile(
    policy,
    JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived', 'ResponseStarted'],
      rules: [
        { level: 'Metadata', users: ['archwright-webhook', 'archwright-controller', 'archwright-report'] },
        { level: 'None' },
      ],
    }),
  );
  await writeFile(auditLog(directory), '');
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${auditLog(directory)}`];
}

/** A request of archwright, as the API server noted it. */
export interface AuditedRequest {
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
}

function auditLog(directory: string): string {
  return join(directory, 'audit.log');
}

/** Reads records from now on; call it again for later ones. */
export async function readAudit(directory: string): Promise<() => Promise<readonly AuditedRequest[]>> {
  // The last line may be incomplete: it counts next time.
  let offset = (await readFile(auditLog(directory))).lastIndexOf(10) + 1;
  return async () => {
    const file = await open(auditLog(directory));
    try {
      const { size } = await file.stat();
      const { buffer } = await file.read(Buffer.alloc(size - offset), 0, size - offset, offset);
      const end = buffer.lastIndexOf(10) + 1;
      offset += end;
      return buffer
        .toString('utf8', 0, end)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => {
          const { user, verb, objectRef } = JSON.parse(line) as {
            user: { username: string };
            verb: string;
            objectRef?: { resource: string; subresource?: string };
          };
          const resource = [objectRef?.resource ?? '', objectRef?.subresource].filter(Boolean).join('/');
          return { user: user.username, verb, resource };
        });
    } finally {
      await file.close();
    }
  };
}
