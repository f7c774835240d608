/**
 * Shared by all steps: paged lists, rate-limited changes with a few tries each, and the report. A failure ends
 * the work on one object, an unreadable list ends the step, and only the program's end ends the run.
 */
import { backOffMs, type Clock } from '../async/clock.ts';
import { createRateLimiter } from '../async/rate-limiter.ts';
import type { GetOptions, KubeClient, Patch } from '../kube/api/client.ts';
import type { Query } from '../kube/api/transport.ts';
import { ignoring, isCode, KubeError } from '../kube/api/errors.ts';
import { fencedClient, leaderWrites } from '../kube/api/fenced.ts';
import type { KubeObject } from '../kube/api/objects.ts';
import { objectsOf } from '../kube/api/pages.ts';
import type { Configuration } from '../policy/configuration/configuration.ts';

export interface CleanOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly configuration: Configuration;
  readonly dryRun: boolean;
  readonly restartPods: boolean;
  /** Takes a line for the waiting user. */
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Changes one object. After a conflict it is called again and should read the object again. */
export type Change = (client: KubeClient, signal: AbortSignal) => Promise<void>;

interface Targets<T> {
  readonly step: string;
  readonly objects: AsyncIterable<T>;
  /** The path of an object, and its name in the report. */
  readonly of: (name: string, namespace: string) => readonly [path: string, what: string];
  /** `undefined`: nothing to change. */
  readonly patchOf: (object: T) => Patch | undefined;
}

/** The limiter keeps the rate; parallel workers hide the time of each request. */
const workers = 16;
const tries = 6;
const backOff = { firstMs: 500, mostMs: 30_000 };
/** How often a list is started again that expired on the server (410) before its last page was read. */
const restarts = 3;

const progressEvery = 500;

export type CleanReport = ReturnType<CleanRun['report']>;

export class CleanRun {
  readonly options: CleanOptions;
  readonly signal: AbortSignal;
  readonly #tallies = new Map<string, ReturnType<typeof emptyTally>>();
  /** Writes wait for the limiter. */
  readonly #writer: KubeClient;

  constructor(options: CleanOptions) {
    const { client, clock, signal } = options;
    this.options = options;
    this.signal = signal;
    const limiter = createRateLimiter({ ...leaderWrites, clock });
    this.#writer = fencedClient({ client, leading: signal, limiter });
  }

  #tallyOf(step: string) {
    const tally = this.#tallies.get(step) ?? emptyTally();
    this.#tallies.set(step, tally);
    return tally;
  }

  /** A step may run several times: only failures of its last run count. @returns `undefined`: it failed as a whole */
  async step<T>(name: string, run: () => Promise<T>): Promise<T | undefined> {
    const { dryRun, progress } = this.options;
    const tally = this.#tallyOf(name);
    const before = tally.done;
    tally.failures.clear();
    try {
      const result = await run();
      if (tally.done > before) progress(`${name}: ${tally.done} ${dryRun ? 'would be done' : 'done'}`);
      return result;
    } catch (error) {
      const failure = this.failureOf(error);
      this.fail(name, failure.where, reasonOf(failure));
      return undefined;
    }
  }

  fail(step: string, what: string, why: string): void {
    this.#tallyOf(step).failures.set(what, why);
  }

  hasFailed(step: string): boolean {
    return this.#tallyOf(step).failures.size > 0;
  }

  note(step: string, text: string): void {
    this.#tallyOf(step).notes.add(text);
  }

  report() {
    const steps = [...this.#tallies].map(([step, { done, failures, notes }]) => {
      const failed = [...failures].map(([what, why]) => ({ what, why }));
      return { step, done, failures: failed, notes: [...notes] };
    });
    /** Whether nothing is left. */
    const complete = steps.every(({ failures }) => failures.length === 0);
    return { dryRun: this.options.dryRun, complete, steps };
  }

  /** @throws the signal's reason if it aborted, and any error that is not a KubeError */
  failureOf(error: unknown): KubeError {
    this.signal.throwIfAborted();
    if (!(error instanceof KubeError)) throw error;
    return error;
  }

  async *list<T extends KubeObject>(path: string, query: Query = {}): AsyncGenerator<T, void> {
    const { signal } = this;
    const { client } = this.options;
    const patient = {
      get: <P>(at: string, options: GetOptions) => this.#persistently(() => client.get<P>(at, options)),
    };
    for (let restarted = 0; ; restarted += 1) {
      try {
        yield* objectsOf<T>(patient, path, { signal, query });
        return;
      } catch (error) {
        if (!isCode(error, 'gone') || restarted === restarts) throw error;
      }
    }
  }

  /** @returns `undefined`: it does not exist */
  async read<T>(path: string): Promise<T | undefined> {
    const reading = this.#persistently(() => this.options.client.get<T>(path, { signal: this.signal }));
    return ignoring('not-found', reading);
  }

  /**
   * Changes one object; in a dry run only reports it. An object that no longer exists is done.
   * @returns whether it is done; otherwise the report has the reason
   */
  async change(
    step: string,
    what: string,
    change: Change,
    action: 'change' | 'delete' | 'restart' = 'change',
  ): Promise<boolean> {
    const { dryRun, progress } = this.options;
    try {
      if (!dryRun) await this.#persistently(() => change(this.#writer, this.signal));
    } catch (error) {
      const failure = this.failureOf(error);
      if (failure.code !== 'not-found') {
        this.fail(step, what, reasonOf(failure));
        return false;
      }
    }
    if (dryRun) progress(`would ${action} ${what}`);
    const tally = this.#tallyOf(step);
    tally.done += 1;
    if (tally.done % progressEvery === 0) progress(`${step}: ${tally.done} done`);
    return true;
  }

  /**
   * Changes objects by guarded patches, several at a time.
   * @returns how many are done
   * @throws KubeError if they cannot be listed
   */
  async patchEach<T extends KubeObject>(targets: Targets<T>): Promise<number> {
    let done = 0;
    const iterator = targets.objects[Symbol.asyncIterator]();
    // An async generator queues the calls of `next`, so the list has one reader at a time.
    const worker = async (): Promise<void> => {
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
        if (await this.#patch(targets, next.value)) done += 1;
    };
    const ends = await Promise.allSettled(Array.from({ length: this.options.dryRun ? 1 : workers }, worker));
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
    return done;
  }

  async #patch<T extends KubeObject>({ step, of, patchOf }: Targets<T>, listed: T): Promise<boolean> {
    if (patchOf(listed) === undefined) return false;
    const { namespace = '', name = '' } = listed.metadata ?? {};
    const [path, what] = of(name, namespace);
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

  /** Retries temporary errors with back-off, and conflicts at once. An expired page (410) stays expired. */
  async #persistently<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run();
      } catch (error) {
        this.signal.throwIfAborted();
        const canRetry = error instanceof KubeError && (error.temporary || error.code === 'conflict');
        if (!canRetry || error.code === 'gone' || attempt === tries) throw error;
        if (error.code === 'conflict') continue;
        const pauseMs = Math.max(backOffMs(backOff, attempt), error.retryAfterMs ?? 0);
        await this.options.clock.sleep(Math.min(pauseMs, backOff.mostMs), this.signal);
      }
    }
  }
}

/**
 * `done`: objects that were changed or removed; in a dry run those that would have been. `failures`: why, by
 * kind, namespace and name of an object, or by the request that ended the step. `notes`: more for the user.
 */
function emptyTally() {
  return { done: 0, failures: new Map<string, string>(), notes: new Set<string>() };
}

/** The API server's message, without the method and path before it. */
export function reasonOf({ where, message }: KubeError): string {
  return message.startsWith(`${where}: `) ? message.slice(where.length + 2) : message;
}
