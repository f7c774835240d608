/**
 * What the files of a container runtime say, read again after each change of their directories. Problems are
 * logged once; the fingerprint, which is slow, is computed only if the content changed.
 */
import { createHash } from 'node:crypto';
import type { Problem, SourceProblem } from '../src/credentials/credential.ts';
import { combineFingerprints, textFingerprint } from '../src/credentials/identity.ts';
import { newProblems } from '../src/credentials/problems.ts';
import { bindSourceMetrics, type SourceMeter } from '../src/credentials/sources/metrics.ts';
import { liveContent, type LiveContent } from '../src/files/live.ts';
import { DirectoryWatcher } from '../src/files/watch.ts';
import type { Log } from '../src/telemetry/log.ts';
import type { RuntimeName, RuntimeOptions } from './runtime.ts';

export interface Reading<Found> {
  readonly found: Found;
  readonly problems: readonly Problem[];
  /** Everything that affects pulls, in clear text with secrets: only for hashing. */
  readonly content: string;
  /** Directories that were found by reading. */
  readonly dirs: readonly string[];
}

interface State<Found> {
  readonly found: Found;
  readonly problems: readonly SourceProblem[];
  readonly id: string;
  readonly fingerprint: string;
}

/** Each watched directory costs a system handle. */
const maxWatched = 200;

export class RuntimeFiles<Found> {
  readonly #name: RuntimeName;
  readonly #options: RuntimeOptions;
  readonly #dirs: readonly string[];
  readonly #read: () => Promise<Reading<Found>>;
  readonly #log: Log | undefined;
  readonly #meter: SourceMeter;
  #state: State<Found> | undefined;
  #live: LiveContent<State<Found>> | undefined;
  /** Watches the directories that are found by reading; `#live` watches the others. */
  #watched: { readonly dirs: string; readonly watcher: DirectoryWatcher } | undefined;
  #isClosed = false;

  /** @param dirs that are watched in any case @param read is never called concurrently */
  constructor(
    name: RuntimeName,
    options: RuntimeOptions,
    dirs: readonly string[],
    read: () => Promise<Reading<Found>>,
  ) {
    this.#name = name;
    this.#options = options;
    this.#dirs = dirs;
    this.#read = read;
    this.#log = options.log?.child({ endpointSource: name });
    this.#meter = bindSourceMetrics(options.metrics, name);
  }

  async start(): Promise<void> {
    this.#live = await liveContent<State<Found>>({
      ...this.#options,
      root: this.#options.hostRoot,
      dirs: [...new Set(this.#dirs)],
      read: () => this.#readState(),
      fingerprint: ({ id }) => id,
      onRead: (state) => this.#meter.read(state?.problems.length === 0),
      onProblem: (error) =>
        this.#log?.warn(
          { err: error },
          `reading the configuration of ${this.#name} failed; the last one stays in force`,
        ),
    });
  }

  /** The last reading. */
  current(): Found | undefined {
    return this.#state?.found;
  }

  fingerprint(): string {
    return this.#state?.fingerprint ?? combineFingerprints([this.#name]);
  }

  /** @param origin of a failure to read at all */
  problems(origin: string): readonly SourceProblem[] {
    const failure = this.#live?.problem();
    const found = this.#state?.problems ?? [];
    if (failure === undefined) return found;
    return [...found, { source: this.#name, origin, message: failure.message }];
  }

  async refresh(): Promise<void> {
    await this.#live?.refresh();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#live?.close();
    await this.#watched?.watcher.close();
  }

  async #readState(): Promise<State<Found>> {
    const { found, content, dirs, ...reading } = await this.#read();
    const problems = reading.problems.map((each): SourceProblem => ({ source: this.#name, ...each }));
    for (const { origin, message } of newProblems(problems, this.#state?.problems)) {
      this.#log?.warn({ origin, problem: message }, `the configuration of ${this.#name} has a problem`);
    }
    const id = createHash('sha256').update(content).digest('base64url');
    const fingerprint =
      id === this.#state?.id ? this.#state.fingerprint : await textFingerprint(this.#name, content);
    this.#state = { found, problems, id, fingerprint };
    await this.#watch(dirs);
    return this.#state;
  }

  async #watch(found: readonly string[]): Promise<void> {
    const dirs = [...new Set(found)].slice(0, maxWatched);
    const id = dirs.join('\0');
    if (this.#watched?.dirs === id || this.#isClosed) return;
    const before = this.#watched;
    const options = { ...this.#options, root: this.#options.hostRoot };
    this.#watched = {
      dirs: id,
      watcher: new DirectoryWatcher(dirs, () => void this.#live?.refresh(), options),
    };
    await before?.watcher.close();
  }
}
