/**
 * The state file of an agent: its shared facts, for the next process. One JSON object in each line, written
 * beside the file, which it then replaces. A file that cannot be parsed is ignored. It holds no secrets.
 */
import { rename, rm, writeFile } from 'node:fs/promises';
import { systemClock, type Clock } from '../../async/clock.ts';
import { FileError, linesOfFile } from '../../files/read.ts';
import type { Log } from '../../telemetry/log.ts';
import type { ImageFacts } from '../facts/facts.ts';
import { formatFacts, readFacts } from '../facts/wire.ts';

/** 100,000 facts with the ten platforms of an official image take about 70 MB. */
const defaultMaxBytes = 96 * 1_048_576;
/** Changes come in bursts; a crash costs at most this much knowledge. The disk is the node's. */
const writeDelayMs = 60_000;
/** Facts with 64 platforms take 25 KB. A container with the host path may write lines that need 1 GB to parse. */
const maxLineBytes = 131_072;
/** Names of images are public inside the cluster, but not for other users of the machine. */
const fileMode = 0o600;

interface FactsFileOptions {
  readonly path: string;
  readonly log: Log;
  readonly maxBytes?: number;
  readonly clock?: Clock;
}

/** What a file is loaded into: one fact after the other, because all at once need four times their memory. */
interface Loaded {
  learn(facts: ImageFacts): void;
  /** Forgets them all. */
  clear(): void;
}

export class FactsFile {
  readonly #options: Required<FactsFileOptions>;
  #facts: () => Iterable<ImageFacts> = () => [];
  #cancelTimer: (() => void) | undefined;
  #writing = Promise.resolve();

  constructor(options: FactsFileOptions) {
    this.#options = { maxBytes: defaultMaxBytes, clock: systemClock, ...options };
  }

  /** @returns the number of facts; 0 for a file that cannot be used, of which nothing is kept */
  async load(into: Loaded): Promise<number> {
    const { path, maxBytes, log } = this.#options;
    let count = 0;
    try {
      for await (const line of linesOfFile(path, { maxBytes, maxLineBytes })) {
        into.learn(readFacts(JSON.parse(line)));
        count += 1;
      }
      return count;
    } catch (error) {
      into.clear();
      const isMissing = error instanceof FileError && error.code === 'missing';
      if (!isMissing) log.warn({ err: error, path }, 'the state file is ignored');
      return 0;
    } finally {
      // What was just read need not be written.
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
    }
  }

  /** Sets what is written: the most important facts first. */
  keep(facts: () => Iterable<ImageFacts>): void {
    this.#facts = facts;
  }

  /** The facts have changed; they are written soon. */
  changed(): void {
    this.#cancelTimer ??= this.#options.clock.timer(writeDelayMs, () => this.#startWrite());
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    this.#cancelTimer?.();
    if (this.#cancelTimer) this.#startWrite();
    await this.#writing;
  }

  #startWrite(): void {
    this.#cancelTimer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    const { path, maxBytes, log } = this.#options;
    // Several commands of a person can run at the same time.
    const temporary = `${path}.${process.pid}.new`;
    try {
      await rm(temporary, { force: true });
      const text = formatFacts(this.#facts(), maxBytes);
      await writeFile(temporary, text, { flag: 'wx', mode: fileMode, flush: true });
      await rename(temporary, path);
    } catch (error) {
      log.warn({ err: error, path }, 'the state file cannot be written');
      await rm(temporary, { force: true }).catch(() => undefined);
    }
  }
}
