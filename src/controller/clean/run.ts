/**
 * What all steps of cleaning share: they read lists in pages, change objects at a limited rate with a few tries each, and count. A
 * failure ends the work on one object; an unreadable list ends the step; only the end of the program ends the run.
 */
import type { Clock } from '../../async/clock.ts';
import type { RateLimiter } from '../../async/rate-limiter.ts';
import type { GetOptions, KubeClient, Patch, Query } from '../../kube/api/client.ts';
import { ignoring, isCode, KubeError } from '../../kube/api/errors.ts';
import { fencedClient } from '../../kube/api/fenced.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { pagesOf } from '../../kube/api/pages.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import { rehearse } from './rehearse.ts';
import { Tallies } from './report.ts';

export interface CleanOptions {
  readonly client: KubeClient;
  /** For all writes. */
  readonly limiter: RateLimiter;
  /** Namespace that archwright runs or ran in. */
  readonly namespace: string;
  readonly configuration: Configuration;
  /** Only reports what it would do. */
  readonly dryRun: boolean;
  readonly restartPods: boolean;
  /** Takes a line for the waiting user. */
  readonly progress: (line: string) => void;
  /** Aborts when the program is to stop. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Changes one object. After a conflict it is called again and should read the object again. */
export type Change = (client: KubeClient, signal: AbortSignal) => Promise<void>;

/** The limiter keeps the rate; parallel workers hide the time of each request. */
const workers = 16;
const tries = 6;
const backoff = { firstMs: 500, mostMs: 30_000 };
/** Of a list that expired on the server (410) before its last page was read. */
const restarts = 3;

/** One run of `archwright clean`. */
export class CleanRun {
  readonly options: CleanOptions;
  readonly signal: AbortSignal;
  readonly tallies: Tallies;
  /** Writes wait for the limiter. */
  readonly #writer: KubeClient;

  constructor(
    options: CleanOptions,
    signal = options.signal,
    tallies = new Tallies(options.dryRun, options.progress),
  ) {
    this.options = options;
    this.signal = signal;
    this.tallies = tallies;
    const { client, limiter } = options;
    this.#writer = fencedClient({ client, leading: signal, limiter });
  }

  /** The same run, which this signal ends too. */
  until(signal: AbortSignal | undefined): CleanRun {
    return signal ? new CleanRun(this.options, AbortSignal.any([this.signal, signal]), this.tallies) : this;
  }

  /** @returns `undefined`: the step failed as a whole */
  async step<T>(name: string, run: () => Promise<T>): Promise<T | undefined> {
    const before = this.tallies.countOf(name);
    try {
      this.signal.throwIfAborted();
      const result = await run();
      this.tallies.ended(name, before);
      return result;
    } catch (error) {
      this.signal.throwIfAborted();
      if (!(error instanceof KubeError)) throw error;
      this.tallies.break(name, error.where, reasonOf(error));
      return undefined;
    }
  }

  /**
   * Every object of a collection.
   * @throws KubeError
   */
  async *list<T extends KubeObject>(path: string, query: Query = {}): AsyncGenerator<T, void> {
    const { client } = this.options;
    const patient = {
      get: <P>(at: string, options: GetOptions) => this.#persistently(() => client.get<P>(at, options)),
    };
    for (let restarted = 0; ; restarted += 1) {
      try {
        for await (const { items } of pagesOf<T>(patient, path, { signal: this.signal, query }))
          yield* items ?? [];
        return;
      } catch (error) {
        if (!isCode(error, 'gone') || restarted === restarts) throw error;
      }
    }
  }

  /**
   * @returns `undefined`: it does not exist
   * @throws KubeError
   */
  async read<T>(path: string): Promise<T | undefined> {
    const { client } = this.options;
    return ignoring(
      'not-found',
      this.#persistently(() => client.get<T>(path, { signal: this.signal })),
    );
  }

  /**
   * Changes one object; in a dry run only reports it. An object that no longer exists is done.
   * @returns whether it is done; otherwise the report has the reason
   */
  async change(step: string, what: string, change: Change): Promise<boolean> {
    try {
      if (!this.options.dryRun) await this.#persistently(() => change(this.#writer, this.signal));
    } catch (error) {
      this.signal.throwIfAborted();
      if (!(error instanceof KubeError)) throw error;
      if (error.code !== 'not-found') {
        this.tallies.fail(step, what, reasonOf(error));
        return false;
      }
    }
    this.tallies.done(step, what);
    return true;
  }

  /**
   * Changes one object by a guarded patch.
   * @param listed the object as the list had it
   * @param patchOf `undefined`: nothing to change
   */
  async patch<T extends KubeObject>(
    step: string,
    what: string,
    target: { readonly path: string; readonly listed: T },
    patchOf: (object: T) => Patch | undefined,
  ): Promise<boolean> {
    const { path, listed } = target;
    const problem = this.options.dryRun ? rehearse(listed, patchOf) : undefined;
    if (problem !== undefined) {
      this.tallies.fail(step, what, problem);
      return false;
    }
    let object: T | undefined = listed;
    return this.change(step, what, async (client, signal) => {
      const patch = patchOf((object ??= await client.get<T>(path, { signal })));
      object = undefined;
      try {
        if (patch) await client.patch(path, patch, { signal });
      } catch (error) {
        // A JSON patch that removes an item may fail before the API server compares the version.
        if (!isCode(error, 'invalid')) throw error;
        throw new KubeError('conflict', error.where, error.message, { cause: error });
      }
    });
  }

  /** Works on every item, several at a time. */
  async each<T>(items: AsyncIterable<T>, work: (item: T) => Promise<unknown>): Promise<void> {
    const iterator = items[Symbol.asyncIterator]();
    // An async generator queues the calls of `next`, so the list has one reader at a time.
    const worker = async (): Promise<void> => {
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
        await work(next.value);
    };
    const ends = await Promise.allSettled(Array.from({ length: this.options.dryRun ? 1 : workers }, worker));
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Retries temporary errors with back-off, and conflicts at once. An expired page (410) will not come back. */
  async #persistently<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      this.signal.throwIfAborted();
      try {
        return await run();
      } catch (error) {
        this.signal.throwIfAborted();
        const canRetry = error instanceof KubeError && (error.temporary || error.code === 'conflict');
        if (!canRetry || error.code === 'gone' || attempt === tries) throw error;
        if (error.code === 'conflict') continue;
        const pauseMs = Math.max(backoff.firstMs * 2 ** (attempt - 1), error.retryAfterMs ?? 0);
        await this.options.clock.sleep(Math.min(pauseMs, backoff.mostMs), this.signal);
      }
    }
  }
}

/** What the API server said, without the method and path before it. */
export function reasonOf({ where, message }: KubeError): string {
  return message.startsWith(`${where}: `) ? message.slice(where.length + 2) : message;
}
