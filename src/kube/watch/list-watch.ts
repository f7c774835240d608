/**
 * The protocol of a reflector: a list in pages, then a watch from the list's version on. Failures are retried
 * with a back-off. A version that is gone (410) leads to a new list. A watch without data or bookmarks is
 * given up. After several failures in a row a new list replaces the version: a server restored from a backup
 * does not have that version, and reports this in several ways.
 *
 * The kind of a collection may be missing in a cluster: the API server then answers with 404, or with 403 without
 * the right to read it. Such a collection is empty, and listed again from time to time. A 403 for a collection
 * that was readable before stays an error: an API server refuses everything at its start until it has loaded its
 * roles.
 *
 * Rules: Kubernetes API concepts, "Efficient detection of changes"; client-go tools/cache/reflector.go.
 */
import { backOffMs, type Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { asObject, parseJson } from '../../http/json.ts';
import type { KubeClient } from '../api/client.ts';
import type { Query } from '../api/transport.ts';
import { PageSize, pagesOf } from '../api/pages.ts';
import { isCode, KubeError } from '../api/errors.ts';
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
  readonly changed: (object: KubeObject, isGone: boolean) => void;
  /** See `ReflectorOptions`. */
  readonly isOptional: boolean;
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
/** Delay until a newly installed kind is noticed. */
const lookAgainMs = 30_000;

export class ListWatch {
  readonly #options: ListWatchOptions;
  readonly #where: string;
  readonly #size = new PageSize();
  /** The next watch begins at it; `undefined`: a list comes first. */
  #version: string | undefined;
  /** Failures in a row. */
  #failures = 0;
  #wasReadable = false;
  /** Refusals before it was readable. */
  #refusals = 0;
  #isAbsent = false;

  constructor(options: ListWatchOptions) {
    this.#options = options;
    this.#where = `GET ${options.path}`;
  }

  /** Whether the kind is not installed, as far as it is known. */
  get isAbsent(): boolean {
    return this.#isAbsent;
  }

  /** Lists and watches until the signal aborts; never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#once().catch((error: unknown) => (signal.aborted ? undefined : this.#recover(error)));
      } catch {
        // Only the signal ends a pause: the loop ends too.
      }
    }
  }

  /** One watch, after a list if there is no version. */
  async #once(): Promise<void> {
    const { signal, clock, ended } = this.#options;
    this.#version ??= await this.#list();
    const started = clock.monotonic();
    let lived = 0;
    try {
      await this.#follow(this.#version);
    } finally {
      lived = clock.monotonic() - started;
      if (lived >= soundMs) this.#failures = 0;
    }
    if (signal.aborted) return;
    ended();
    // A server that ends each watch at once must not cause a busy loop.
    if (lived < backOff.firstMs) await clock.sleep(backOff.firstMs, signal);
  }

  async #list(): Promise<string> {
    const { client, path, signal, selection } = this.#options;
    const taking = this.#options.listed();
    let listed: string | undefined;
    const call = { signal, query: selection, size: this.#size };
    for await (const { items, metadata } of pagesOf<KubeObject>(client, path, call)) {
      for (const item of items ?? []) taking.add(item);
      listed = metadata?.resourceVersion;
    }
    if (!listed) throw new KubeError('bad-answer', this.#where, `${this.#where}: a list without a version`);
    taking.done();
    this.#wasReadable = true;
    this.#isAbsent = false;
    return listed;
  }

  async #follow(from: string): Promise<void> {
    const { client, path, signal, clock, selection, idleMs, opened } = this.#options;
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: from,
      timeoutSeconds: Math.round(watchSeconds.least + clock.random() * watchSeconds.spread),
      ...selection,
    };
    for await (const line of client.lines(path, { signal, query, idleMs: idleMs(), onOpen: opened })) {
      if (signal.aborted) return;
      this.#version = this.#take(line) ?? this.#version;
    }
  }

  /** Takes one line of a watch. @returns the version of its object */
  #take(line: string): string | undefined {
    const { type, object }: WatchEvent = asObject(parseJson(line)) ?? {};
    if (typeof object !== 'object' || object === null) {
      throw new KubeError('bad-answer', this.#where, 'a line of a watch is not an event');
    }
    if (type === 'ERROR') {
      const code = object.code === 410 ? 'gone' : 'unavailable';
      const why = object.message ?? object.code ?? 'no reason';
      throw new KubeError(code, this.#where, `watch ended by the server: ${why}`.slice(0, 512));
    }
    if (type === 'ADDED' || type === 'MODIFIED') this.#options.changed(object, false);
    else if (type === 'DELETED') this.#options.changed(object, true);
    return object.metadata?.resourceVersion;
  }

  async #recover(error: unknown): Promise<void> {
    const { path, signal, clock, log, ended, isOptional } = this.#options;
    const isRefused = isCode(error, 'forbidden') && !this.#wasReadable;
    if (isOptional && (isRefused || isCode(error, 'not-found'))) {
      // A missing definition is a choice. A missing right is a mistake.
      if (isRefused && !this.#isAbsent)
        log.warn({ path, error: messageOf(error) }, 'no right to read these objects; they count as absent');
      this.#version = undefined;
      if (!this.#isAbsent) this.#options.listed().done();
      this.#isAbsent = true;
      if (!isRefused) return await clock.sleep(lookAgainMs, signal);
      // It may only be that the server has not loaded its roles yet.
      this.#refusals += 1;
      return await clock.sleep(backOffMs(backOff, this.#refusals, clock.random), signal);
    }
    ended(error);
    const known = error instanceof KubeError ? error : undefined;
    const gone = known?.code === 'gone';
    this.#failures += 1;
    // Only a watch that lost its connection can resume; anything else needs a new list.
    if (known?.temporary !== true || gone || this.#failures % doubtfulFailures === 0)
      this.#version = undefined;
    const wantedMs = Math.min(known?.retryAfterMs ?? 0, backOff.mostMs);
    const delayMs = backOffMs(backOff, this.#failures, clock.random);
    const fields = { path, failures: this.#failures, error: messageOf(error) };
    log.warn(fields, 'watch is interrupted; trying again');
    await clock.sleep(Math.max(gone ? delayMs / 2 : delayMs, wantedMs), signal);
  }
}

interface WatchEvent {
  readonly type?: string;
  readonly object?: KubeObject & { readonly code?: number; readonly message?: string };
}
