/** Reads an event of a watch. Objects that are not kept are not parsed, nor the managed fields of others. */
import { KubeError } from '../api/errors.ts';
import type { KubeObject } from '../api/objects.ts';

export interface WatchEvent {
  readonly type?: string;
  readonly object?: KubeObject & { readonly code?: number; readonly message?: string };
  /** Whether the object is complete; else it has only its name, because it is gone or not kept. */
  readonly whole: boolean;
}

const head =
  /^\{"type":"(ADDED|MODIFIED|DELETED)","object":\{"kind":"[\w.]+","apiVersion":"[\w./-]+","metadata":\{"name":"([\w.-]+)",(?:"generateName":"[\w.-]*",)?(?:"namespace":"([\w.-]+)",)?"uid":"[\w-]+","resourceVersion":"(\w+)"/u;
const managedFields = ',"managedFields":[';
/** JSON strings escape quotes, so neither text occurs in one; entries have fixed keys or keys with `f:`. */
const afterManagedFields = ']},"spec":{';

/**
 * Reads one line of a watch.
 * @param mayKeep as in `ReflectorOptions`
 * @param where for errors
 * @throws KubeError `bad-answer` if it is no event
 */
export function readWatchEvent(
  line: string,
  mayKeep: ((line: string) => boolean) | undefined,
  where: string,
): WatchEvent {
  if (line.startsWith('{"type":"DELETED"') || mayKeep?.(line) === false) {
    const [, type, name, namespace, resourceVersion] = head.exec(line) ?? [];
    if (type !== undefined && name !== undefined && resourceVersion !== undefined) {
      const metadata = { name, ...(namespace !== undefined && { namespace }), resourceVersion };
      return { type, object: { metadata }, whole: false };
    }
  }
  const event = parse(withoutManagedFields(line), where);
  return { ...event, whole: event.type !== 'DELETED' };
}

function withoutManagedFields(line: string): string {
  const start = line.indexOf(managedFields);
  const end = start < 0 ? -1 : line.indexOf(afterManagedFields, start);
  return end < 0 ? line : line.slice(0, start) + line.slice(end + 1);
}

function parse(line: string, where: string): Omit<WatchEvent, 'whole'> {
  try {
    const event: unknown = JSON.parse(line);
    if (typeof event === 'object' && event !== null) return event;
  } catch (cause) {
    throw new KubeError('bad-answer', where, 'a line of a watch is not JSON', { cause });
  }
  throw new KubeError('bad-answer', where, 'a line of a watch is not an event');
}
