/**
 * All sources that are files: they are read again when their directories change, their problems are logged once,
 * and the slow fingerprint is computed only if the content changed.
 */
import { liveContent, type LiveContent, type WatchOptions } from '../../files/live.ts';
import { hashOf } from '../../names/hash.ts';
import type { Log } from '../../telemetry/log.ts';
import { gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';
import { leftOut, type SourcePart } from '../../files/source-part.ts';
import type {
  CredentialSource,
  HeldCredential,
  MatchedCredential,
  Problem,
  SourceProblem,
} from '../credential.ts';
import { contentOf, textFingerprint } from '../identity.ts';
import { createKeyring, type Keyring } from '../keyring/keyring.ts';
import { describeSourceProblem } from '../problems.ts';

const liveSourceNames = [
  'registry-toml',
  'docker-config',
  'credential-provider',
  'containerd',
  'cri-o',
] as const;
type LiveSourceName = (typeof liveSourceNames)[number];

const broken = gauge(
  'archwright_source_broken',
  'Set to 1 if part of a source cannot be used. Its last good content may still be in force.',
  { source: liveSourceNames },
);

export const sourceMetrics: readonly MetricSpec[] = [broken];

export interface LiveCredentialSource extends CredentialSource {
  /** Equal for equal content, reveals nothing. */
  fingerprint(): string;
  /** The state of each part, in order of reading. */
  describe(): Promise<readonly SourcePart[]>;
  /** Reads the files now instead of at the next change. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** The content of a source's files; a partly malformed source has credentials and problems. */
export interface Findings {
  readonly held: readonly HeldCredential[];
  /** Every part that was read. Those that are left out are problems. */
  readonly parts: readonly SourcePart[];
}

export interface FileSourceOptions extends WatchOptions {
  readonly metrics?: Metrics | undefined;
  /** Called when the content changed. */
  readonly onChange?: (() => void) | undefined;
}

export interface Reading<Found> {
  readonly found: Found;
  readonly problems: readonly Problem[];
  /** Everything that counts, in clear text with secrets: only for hashing. */
  readonly content: string;
  /** Directories that were found by reading. */
  readonly dirs?: readonly string[];
}

export interface LiveSourceOptions<Found> extends FileSourceOptions {
  readonly name: LiveSourceName;
  /** Watched in any case. */
  readonly dirs: readonly string[];
  /** The state before the first reading. */
  readonly initial: Found;
  /** Logged with each new problem. */
  readonly problemText: string;
}

interface State<Found> extends Omit<Reading<Found>, 'content'> {
  readonly problems: readonly SourceProblem[];
  readonly id: string;
  readonly fingerprint: string;
}

/** Each watched directory costs a system handle. */
const maxWatched = 200;

export abstract class LiveSource<Found> implements LiveCredentialSource {
  readonly name: LiveSourceName;
  readonly #options: LiveSourceOptions<Found>;
  readonly #log: Log | undefined;
  readonly #closing = new AbortController();
  #state: State<Found>;
  #live: LiveContent<State<Found>> | undefined;

  constructor(options: LiveSourceOptions<Found>) {
    const { name, initial: found, log } = options;
    this.name = name;
    this.#options = options;
    this.#log = log?.child({ source: name });
    const fingerprint = hashOf([name]);
    this.#state = { found, problems: [], id: hashOf(''), fingerprint };
  }

  abstract lookup(repository: string): Promise<readonly MatchedCredential[]>;
  abstract describe(): Promise<readonly SourcePart[]>;
  /** Never called concurrently. */
  protected abstract read(): Promise<Reading<Found>>;

  async start(): Promise<this> {
    const isBroken = this.#options.metrics?.gauge(broken, { source: this.name });
    this.#live = await liveContent<State<Found>>({
      ...this.#options,
      read: () => this.#readState(),
      dirsOf: ({ dirs = [] }) => [...new Set(dirs)].slice(0, maxWatched),
      fingerprint: ({ id }) => id,
      onChange: () => this.#options.onChange?.(),
      onRead: (state) => isBroken?.set(state?.problems.length === 0 ? 0 : 1),
      onProblem: (error) =>
        this.#log?.warn({ err: error }, 'reading a source failed; its last content stays in force'),
    });
    return this;
  }

  /** The last reading. */
  protected get found(): Found {
    return this.#state.found;
  }

  /** Aborted by `close`. */
  protected get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Why nothing can be read. */
  protected failure(): SourceProblem | undefined {
    const error = this.#live?.problem();
    const { name, dirs } = this.#options;
    return error && { source: name, origin: dirs.join(', '), message: error.message };
  }

  problems(): readonly SourceProblem[] {
    const failure = this.failure();
    return [...this.#state.problems, ...(failure ? [failure] : [])];
  }

  fingerprint(): string {
    return this.#state.fingerprint;
  }

  async refresh(): Promise<void> {
    await this.#live?.refresh();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#live?.close();
  }

  async #readState(): Promise<State<Found>> {
    const { content, ...reading } = await this.read();
    const problems = reading.problems.map((each): SourceProblem => ({ source: this.name, ...each }));
    const known = new Set(this.#state.problems.map(describeSourceProblem));
    for (const { origin, message } of problems.filter((each) => !known.has(describeSourceProblem(each))))
      this.#log?.warn({ origin, problem: message }, this.#options.problemText);
    const id = hashOf(content);
    const fingerprint =
      id === this.#state.id ? this.#state.fingerprint : await textFingerprint(this.name, content);
    this.#state = { ...reading, problems, id, fingerprint };
    return this.#state;
  }
}

type FileContent = Pick<Findings, 'parts'> & { readonly keyring: Keyring };

class FileSource extends LiveSource<FileContent> {
  readonly #readFiles: () => Promise<Findings>;

  constructor(
    name: LiveSourceName,
    dirs: readonly string[],
    read: () => Promise<Findings>,
    options: FileSourceOptions,
  ) {
    const initial = { parts: [], keyring: createKeyring(name, []) };
    super({ ...options, name, dirs, initial, problemText: 'some credentials are not used' });
    this.#readFiles = read;
  }

  lookup(repository: string): Promise<readonly MatchedCredential[]> {
    return Promise.resolve(this.found.keyring.lookup(repository));
  }

  describe(): Promise<readonly SourcePart[]> {
    const failure = this.failure();
    return Promise.resolve(failure ? leftOut([failure]) : this.found.parts);
  }

  protected async read(): Promise<Reading<FileContent>> {
    const { held, parts } = await this.#readFiles();
    const unusable = parts.filter(({ state }) => state === 'left-out');
    const problems = unusable.map(({ where: origin, what: message }) => ({ origin, message }));
    return { found: { parts, keyring: createKeyring(this.name, held) }, problems, content: contentOf(held) };
  }
}

/** @param read never called concurrently */
export async function createFileSource(
  name: LiveSourceName,
  dirs: readonly string[],
  read: () => Promise<Findings>,
  options: FileSourceOptions = {},
): Promise<LiveCredentialSource> {
  return await new FileSource(name, dirs, read, options).start();
}
