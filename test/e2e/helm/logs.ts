/**
 * All log lines of archwright's containers, from the node's disk, so deleted pods count too. Also the refused
 * requests in the API server's audit log, because not every refusal is logged.
 */
import { closeSync, globSync, openSync, readSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { auditLog } from '../cluster/control-plane/audit.ts';
import { namespace } from './release.ts';

export type Followed = ReturnType<typeof followLogs>;

const pollMs = 250;
const chunkBytes = 1024 * 1024;

export function followLogs() {
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
    text: (): string => {
      look();
      return lines.join('\n');
    },
    stop: (): void => over.abort(),
  };
}

export const audit = auditLog('/tmp', { userGroups: [`system:serviceaccounts:${namespace}`] });

/** Requests that were refused for missing rights, each once. */
export function refused(): readonly string[] {
  const found = new Set<string>();
  for (const { verb, user, requestURI, responseStatus } of audit.events()) {
    if (responseStatus?.code === 403)
      found.add(`${user.username}: ${verb} ${requestURI}: ${responseStatus.message ?? ''}`);
  }
  return [...found];
}

/** Users, verbs, and resources as roles name them (`pods/eviction`), of allowed requests. */
export function allowedRequests() {
  return audit.events().flatMap(({ verb, user, objectRef, responseStatus }) => {
    if (objectRef?.resource === undefined || responseStatus?.code === 403) return [];
    const { resource, subresource } = objectRef;
    return [{ user: user.username, verb, resource: subresource ? `${resource}/${subresource}` : resource }];
  });
}
