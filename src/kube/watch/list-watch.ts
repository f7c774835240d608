/**
 * The protocol of a reflector: a list in pages, then a watch from the list's version on. Failures are retried
 * with a back-off. A version that is gone (410) leads to a new list. A watch without data or bookmarks is
 * given up. After several failures in a row a new list replaces the version: a server restored from a backup
 * does not have that version, and reports this in several ways.
 *
 * Rules: Kubernetes API concepts, "Efficient detection of changes"; client-go tools/cache/reflector.go.
 */
import { backOffMs } from '../../async/back-off.ts';
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { KubeClient } from '../api/client.ts';
import type { Query } from '../api/transport.ts';
import { PageSize, pagesOf } from '../api/pages.ts';
import { KubeError } from '../api/errors.ts';
import type { KubeObject } from '../api/objects.ts';
import { messageOf } from '../../names/printable.ts';

/** A list under way: `add` takes each object, `done` is called after the last one. */
export interface Listing {
  add(object: KubeObject): void;
  done(): void;
}

export interface ListWatchOptions {
  readonly client: KubeClient;
  readonly path: string;
  /** Selectors. */
  readonly selection: Query;
  readonly signal: AbortSignal;
  readonly listed: () => Listing;
  /** @param whole whether the object exists; else it is gone, or nothing of it is kept */
  readonly changed: (object: KubeObject, whole: boolean) => void;
  /** As in `ReflectorOptions`. */
  readonly mayKeep?: ((line: string) => boolean) | undefined;
  /** Called when a watch opens or ends: with an error, or without one by the server. */
  readonly opened: () => void;
  readonly ended: (error?: unknown) => void;
  readonly idleMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The server ends a watch after this; jitter spreads the replicas' reconnects (client-go: 5 to 10 min). */
const watchSeconds = { least: 300, spread: 300 };
const backOff = { firstMs: 1_000, mostMs: 30_000 };
/** After a watch that lived this long, the next failure starts with the first back-off again. */
const soundMs = 20_000;
/** After each such number of failures in a row the next try is a list. */
const doubtfulFailures = 5;

export async function listAndWatch(options: ListWatchOptions): Promise<void> {
  const { client, path, signal, log, clock } = options;
  const where = `GET ${path}`;
  const size = new PageSize();
  let version: string | undefined;
  let failures = 0;

  async function list(): Promise<string> {
    const taking = options.listed();
    let listed: string | undefined;
    const call = { signal, query: options.selection, size };
    for await (const { items, metadata } of pagesOf<KubeObject>(client, path, call)) {
      for (const item of items ?? []) taking.add(item);
      listed = metadata?.resourceVersion;
    }
    if (!listed) throw new KubeError('bad-answer', where, `${where}: a list without a version`);
    taking.done();
    return listed;
  }

  async function follow(from: string): Promise<void> {
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: from,
      timeoutSeconds: Math.round(watchSeconds.least + clock.random() * watchSeconds.spread),
      ...options.selection,
    };
    const call = { signal, query, idleMs: options.idleMs(), onOpen: options.opened };
    for await (const line of client.lines(path, call)) {
      if (signal.aborted) return;
      version = take(readWatchEvent(line, options.mayKeep, where)) ?? version;
    }
  }

  function take({ type, object, whole }: WatchEvent): string | undefined {
    if (typeof object !== 'object' || object === null) {
      throw new KubeError('bad-answer', where, 'a watch event without an object');
    }
    if (type === 'ERROR') {
      const code = object.code === 410 ? 'gone' : 'unavailable';
      const why = object.message ?? object.code ?? 'no reason';
      throw new KubeError(code, where, `watch ended by the server: ${why}`.slice(0, 512));
    }
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') options.changed(object, whole);
    return object.metadata?.resourceVersion;
  }

  async function once(): Promise<void> {
    version ??= await list();
    const started = clock.monotonic();
    let lived = 0;
    try {
      await follow(version);
    } finally {
      lived = clock.monotonic() - started;
      if (lived >= soundMs) failures = 0;
    }
    if (signal.aborted) return;
    options.ended();
    // A server that ends each watch at once must not cause a busy loop.
    if (lived < backOff.firstMs) await clock.sleep(backOff.firstMs, signal);
  }

  async function recover(error: unknown): Promise<void> {
    options.ended(error);
    const known = error instanceof KubeError ? error : undefined;
    const gone = known?.code === 'gone';
    failures++;
    // Only a lost connection can resume; anything else needs a new list.
    if (known?.temporary !== true || gone || failures % doubtfulFailures === 0) version = undefined;
    const wantedMs = Math.min(known?.retryAfterMs ?? 0, backOff.mostMs);
    const delayMs = backOffMs(backOff, failures, clock.random);
    log.warn({ path, failures, error: messageOf(error) }, 'watch is interrupted; trying again');
    await clock.sleep(Math.max(gone ? delayMs / 2 : delayMs, wantedMs), signal);
  }

  while (!signal.aborted) {
    try {
      await once().catch((error: unknown) => (signal.aborted ? undefined : recover(error)));
    } catch {
      // Only the signal ends a pause: the loop ends too.
    }
  }
}

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
