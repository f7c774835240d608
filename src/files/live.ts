/**
 * Content of files that is kept up to date: read again every few seconds. A new value replaces the current one
 * only if its fingerprint differs. If reading or parsing fails, the last good value stays in force.
 *
 * No file is watched: a watch misses links to other directories and network file systems, so it needs the
 * reading as well, and must find each directory again that Kubernetes or an editor replaces.
 */

export interface PollOptions {
  /** Default: 10 s, as in controller-runtime's certwatcher. */
  readonly pollMs?: number | undefined;
}

const defaultPollMs = 10_000;

export interface LiveContentOptions<T> extends PollOptions {
  /** Reads and parses; throws if the content cannot be used. Calls never overlap. */
  readonly read: () => Promise<T>;
  /** Equal for equal content. */
  readonly fingerprint: (value: T) => string;
  /** Called with each new value except the first. */
  readonly onChange?: ((value: T) => void) | undefined;
  /** Called after each attempt with the value; `undefined` if it failed. */
  readonly onRead?: ((value: T | undefined) => void) | undefined;
  /** Called once for each distinct problem, and again for the same problem only after a success. */
  readonly onProblem?: ((error: Error) => void) | undefined;
}

/** Reads once, then again and again. After a first failure, `current()` is `undefined`; see `problem()`. */
export async function liveContent<T>(options: LiveContentOptions<T>): Promise<LiveContent<T>> {
  const live = new LiveContent(options);
  await live.start();
  return live;
}

export class LiveContent<T> {
  readonly #options: LiveContentOptions<T>;
  readonly #poll: NodeJS.Timeout;
  #good: { readonly value: T; readonly fingerprint: string } | undefined;
  #problem: Error | undefined;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #started = false;
  #closed = false;

  constructor(options: LiveContentOptions<T>) {
    this.#options = options;
    this.#poll = setInterval(() => void this.refresh(), options.pollMs ?? defaultPollMs).unref();
  }

  async start(): Promise<void> {
    await this.refresh();
    this.#started = true;
  }

  /** The last good value; `undefined` before the first one. */
  current(): T | undefined {
    return this.#good?.value;
  }

  /** Why the last attempt failed; `undefined` after a success. */
  problem(): Error | undefined {
    return this.#problem;
  }

  /** Reads again. Resolves after an attempt that began after this call: one runs, and one is queued. */
  refresh(): Promise<void> {
    if (this.#next === undefined) {
      this.#next = this.#running.then(() => this.#read());
      this.#running = this.#next;
    }
    return this.#next;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#poll);
    await this.#running;
  }

  async #read(): Promise<void> {
    this.#next = undefined;
    if (this.#closed) return;
    const { read, onRead, onProblem } = this.#options;
    try {
      this.#take(await read());
    } catch (error) {
      const before = this.#problem?.message;
      this.#problem = error instanceof Error ? error : new Error(String(error));
      onRead?.(undefined);
      if (this.#problem.message !== before) onProblem?.(this.#problem);
    }
  }

  #take(value: T): void {
    const { fingerprint: fingerprintOf, onRead, onChange } = this.#options;
    const fingerprint = fingerprintOf(value);
    this.#problem = undefined;
    onRead?.(value);
    if (this.#closed || fingerprint === this.#good?.fingerprint) return;
    this.#good = { value, fingerprint };
    if (this.#started) onChange?.(value);
  }
}
