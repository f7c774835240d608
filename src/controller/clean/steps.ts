/**
 * What every step of cleaning does in the same way: reading lists in pages, changing objects at a limited rate with a few
 * tries for each, counting, and remembering what failed. A failure ends the work on one object, a list that cannot be read
 * the step; nothing but the end of the program ends the whole.
 */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeClient, Query } from '../../kube/api/client.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { createPageSize } from '../../kube/api/page-size.ts';
import type { Clock } from '../../async/clock.ts';
import type { CleanOptions } from './clean.ts';

export interface Failure {
  /** Kind, namespace and name. */
  readonly what: string;
  readonly why: string;
}

export interface StepReport {
  readonly step: string;
  /** Objects that were changed or removed; of a dry run those that would have been. */
  readonly done: number;
  readonly failures: readonly Failure[];
  /** What the person should know besides. */
  readonly notes: readonly string[];
}

/** Changes one object; after a conflict it is called again and should read the object anew. */
export type Act = (client: KubeClient, signal: AbortSignal) => Promise<void>;

export interface Cleaning {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly progress: (line: string) => void;
  readonly sleep: CleanOptions['sleep'];
  /** The same, ended by this signal too. */
  within(signal: AbortSignal | undefined): Cleaning;
  /**
   * Runs a step; steps of the same name are one in the report.
   * @returns `undefined` where it failed as a whole
   */
  step<T>(name: string, run: () => Promise<T>): Promise<T | undefined>;
  /**
   * Every object of a collection, read in pages.
   * @throws KubeError
   */
  list<T extends KubeObject>(path: string, query?: Query): AsyncIterable<T>;
  /** Reads with a few tries; `undefined` for what does not exist. @throws KubeError */
  read<T>(path: string): Promise<T | undefined>;
  /** Changes one object, or in a dry run says that it would. What does not exist any more is done. */
  change(step: string, what: string, act: Act): Promise<boolean>;
  /** Counts an object that was changed elsewhere, or in a dry run would be. */
  done(step: string, what: string): void;
  /** Works on every item, several at a time. */
  each<T>(items: AsyncIterable<T>, work: (item: T) => Promise<unknown>): Promise<void>;
  fail(step: string, what: string, why: string): void;
  /** Whether something of a step failed so far. */
  hasFailed(step: string): boolean;
  note(step: string, text: string): void;
  report(): readonly StepReport[];
}

/** The limiter keeps the rate; this hides the time that each request takes. */
const workers = 16;
const tries = 6;
const firstPauseMs = 500;
const longestPauseMs = 30_000;
/** Of a list whose pages expired on the server (410) before it was read to its end. */
const restarts = 3;
/** Between two lines about one step. */
const progressEvery = 500;

interface Tally {
  done: number;
  /** Why the step failed as a whole when it last ran. */
  broken: Failure | undefined;
  readonly failures: Failure[];
  readonly notes: string[];
}

interface Page<T> {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly T[];
}

/** Makes the context of one run. */
export function createCleaning(options: CleanOptions): Cleaning {
  return cleaningOf(options, options.signal, new Map());
}

function cleaningOf(options: CleanOptions, signal: AbortSignal, tallies: Map<string, Tally>): Cleaning {
  const { client, limiter, dryRun, sleep, clock } = options;

  function tallyOf(step: string): Tally {
    let tally = tallies.get(step);
    if (!tally) tallies.set(step, (tally = { done: 0, broken: undefined, failures: [], notes: [] }));
    return tally;
  }

  /** A step that is run again finds the same failures again. */
  function fail(step: string, what: string, why: string): Failure {
    const { failures } = tallyOf(step);
    const known = failures.find((each) => each.what === what);
    if (known) return known;
    const failure = { what, why };
    failures.push(failure);
    options.progress(`${step}: ${what}: ${why}`);
    return failure;
  }

  /** A later look may succeed where an earlier one failed. */
  function forgive({ failures }: Tally, isIt: (failure: Failure) => boolean): void {
    const index = failures.findIndex(isIt);
    if (index >= 0) failures.splice(index, 1);
  }

  function done(step: string, what: string): void {
    const tally = tallyOf(step);
    if (dryRun) options.progress(`would change ${what}`);
    forgive(tally, (failure) => failure.what === what);
    tally.done += 1;
    if (tally.done % progressEvery === 0) options.progress(`${step}: ${tally.done} done`);
  }

  /** Runs until it succeeds, `tries` times at most. A conflict is tried again at once. */
  async function persistently<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await run();
      } catch (error) {
        signal.throwIfAborted();
        const again = error instanceof KubeError && (error.temporary || error.code === 'conflict');
        // A page that expired will not come back.
        if (!again || error.code === 'gone' || attempt === tries) throw error;
        if (error.code === 'conflict') continue;
        const pause = Math.max(firstPauseMs * 2 ** (attempt - 1), error.retryAfterMs ?? 0);
        await sleep(Math.min(pause, longestPauseMs), signal);
      }
    }
  }

  async function* list<T extends KubeObject>(path: string, query: Query = {}): AsyncIterable<T> {
    const pageSize = createPageSize();
    let token = '';
    let restarted = 0;
    do {
      let page: Page<T>;
      try {
        const at = { ...query, ...(token !== '' && { continue: token }) };
        page = await persistently(() =>
          pageSize.read((limit, maxBytes) =>
            client.get<Page<T>>(path, { signal, query: { limit, ...at }, maxBytes }),
          ),
        );
      } catch (error) {
        if (!(error instanceof KubeError) || error.code !== 'gone' || restarted === restarts) throw error;
        restarted += 1;
        token = '';
        continue;
      }
      yield* page.items ?? [];
      token = page.metadata?.continue ?? '';
      if (token === '') return;
    } while (!signal.aborted);
    signal.throwIfAborted();
  }

  const cleaning: Cleaning = {
    client,
    namespace: options.namespace,
    dryRun,
    signal,
    clock,
    sleep,
    progress: options.progress,
    within: (other) => (other ? cleaningOf(options, AbortSignal.any([signal, other]), tallies) : cleaning),
    step: async (name, run) => {
      const tally = tallyOf(name);
      const before = tally.done;
      try {
        signal.throwIfAborted();
        const result = await run();
        forgive(tally, (failure) => failure === tally.broken);
        if (tally.done > before)
          options.progress(`${name}: ${tally.done} ${dryRun ? 'would be changed' : 'done'}`);
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof KubeError)) throw error;
        tally.broken = fail(name, error.where, reasonOf(error));
        return undefined;
      }
    },
    list,
    read: async <T>(path: string) => {
      try {
        return await persistently(() => client.get<T>(path, { signal }));
      } catch (error) {
        if (error instanceof KubeError && error.code === 'not-found') return undefined;
        throw error;
      }
    },
    change: async (step, what, act) => {
      try {
        if (!dryRun)
          await persistently(async () => {
            await limiter.take(signal);
            await act(client, signal);
          });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof KubeError)) throw error;
        if (error.code !== 'not-found') {
          fail(step, what, reasonOf(error));
          return false;
        }
      }
      done(step, what);
      return true;
    },
    done,
    each: async (items, work) => {
      const iterator = items[Symbol.asyncIterator]();
      // One reader at a time: an async generator queues the calls of `next`.
      const worker = async (): Promise<void> => {
        for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
          await work(next.value);
        }
      };
      const ends = await Promise.allSettled(Array.from({ length: dryRun ? 1 : workers }, worker));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed) throw failed.reason;
    },
    fail: (step, what, why) => void fail(step, what, why),
    hasFailed: (step) => tallyOf(step).failures.length > 0,
    note: (step, text) => {
      const { notes } = tallyOf(step);
      if (!notes.includes(text)) notes.push(text);
    },
    report: () => [...tallies].map(([step, { done, failures, notes }]) => ({ step, done, failures, notes })),
  };
  return cleaning;
}

/** What the API server says, without the method and path that stand before it. */
export function reasonOf({ where, message }: KubeError): string {
  return message.startsWith(`${where}: `) ? message.slice(where.length + 2) : message;
}
