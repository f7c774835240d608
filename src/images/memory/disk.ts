/**
 * The agent's state file: the shared facts, so that a restarted agent does not look them up again. It holds no secret.
 * Lines of JSON: a header with format and version, one line per image, the most recently used first, and a last line with
 * their number and the SHA-256 of all before it. Any other file is ignored as a whole. It is written at most every half
 * minute (less often if it is large), to a second file that then takes its name, so that a reader or a crash sees the old
 * one or the new one.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { decodeUtf8, FileError, readBounded } from '../../files/read.ts';
import type { Log } from '../../telemetry/log.ts';
import type { ImageFacts } from '../facts/facts.ts';
import { InvalidFacts, readFacts } from '../facts/wire.ts';

interface FactsFileOptions {
  readonly path: string;
  readonly log: Log;
  /** The most that is read or written; the least recently used facts are left out. */
  readonly maxBytes?: number;
  readonly clock?: Clock;
}

const header = JSON.stringify({ format: 'archwright image facts', version: 1 });

/** 100,000 facts with the ten platforms of an official image take about 70 MB. */
const defaultMaxBytes = 96 * 1_048_576;
/** Room for the last line. */
const trailerBytes = 256;
/** Changes come in bursts; a crash costs at most this much knowledge. */
const writeDelayMs = 30_000;
/** On average no more than this is written, in bytes per millisecond: the disk is the node's. */
const writeRate = 100;
/** A disk that is full or read-only rarely is not for long. */
const retryDelayMs = 300_000;
const chunkBytes = 65_536;
/** Lines read before the event loop goes on. */
const linesPerTurn = 500;
/** Facts are public inside the cluster, but not for other users of the node. */
const fileMode = 0o600;

export class FactsFile {
  readonly #options: Required<FactsFileOptions>;
  #source: () => Iterable<ImageFacts> = () => [];
  #dirty = false;
  #loading = false;
  #failing = false;
  #closed = false;
  #stopTimer: (() => void) | undefined;
  #writing: Promise<number> | undefined;
  #delayMs = writeDelayMs;

  constructor(options: FactsFileOptions) {
    this.#options = { maxBytes: defaultMaxBytes, clock: systemClock, ...options };
  }

  /**
   * Hands over the file's facts, the most recently used last, and returns their number; 0 if it is missing or unusable.
   */
  async load(learn: (facts: ImageFacts) => void): Promise<number> {
    const { path, maxBytes, log } = this.#options;
    this.#loading = true;
    try {
      const facts = await readFile(path, maxBytes);
      for (const one of facts.reverse()) learn(one);
      return facts.length;
    } catch (error) {
      if (error instanceof FileError && error.code === 'missing') return 0;
      log.warn({ err: error, path }, 'the state file is ignored');
      return 0;
    } finally {
      this.#loading = false;
    }
  }

  /** Sets the source of the file: the shared facts, the most recently used first. */
  keep(shared: () => Iterable<ImageFacts>): void {
    this.#source = shared;
  }

  /** Something changed; it is written soon. */
  changed(): void {
    if (this.#loading) return;
    this.#dirty = true;
    this.#schedule();
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    // A write that is under way reports its own failure.
    await this.#writing?.catch(() => undefined);
    if (this.#dirty) await this.#write();
  }

  #schedule(): void {
    if (this.#stopTimer || this.#writing || this.#closed) return;
    this.#stopTimer = this.#options.clock.timer(this.#delayMs, () => {
      this.#stopTimer = undefined;
      void this.#write();
    });
  }

  async #write(): Promise<void> {
    const { path, maxBytes, log } = this.#options;
    this.#dirty = false;
    this.#writing = writeFile(path, this.#source(), maxBytes);
    try {
      this.#delayMs = Math.max(writeDelayMs, (await this.#writing) / writeRate);
      if (this.#failing) log.info({ path }, 'the state file can be written again');
      this.#failing = false;
    } catch (error) {
      this.#dirty = true;
      this.#delayMs = retryDelayMs;
      if (!this.#failing) {
        log.warn({ err: error, path }, 'the state file cannot be written; going on from memory');
      }
      this.#failing = true;
    } finally {
      this.#writing = undefined;
    }
    if (this.#dirty) this.#schedule();
  }
}

class StateFileError extends Error {
  override readonly name = 'StateFileError';
  readonly code = 'corrupt';
  readonly temporary = false;
  readonly where: string;
  constructor(where: string, message: string) {
    super(`${where}: ${message}`);
    this.where = where;
  }
}

async function readFile(path: string, maxBytes: number): Promise<ImageFacts[]> {
  const text = decodeUtf8(await readBounded(path, { maxBytes }), path);
  if (!text.startsWith(`${header}\n`)) {
    throw new StateFileError(path, 'is no state file, or one of another version');
  }
  const trailer = text.lastIndexOf('\n', text.length - 2) + 1;
  const lines = text.slice(header.length + 1, Math.max(header.length + 1, trailer)).split('\n');
  lines.pop();
  if (
    text.slice(trailer) !==
    `${lastLine(lines.length, createHash('sha256').update(text.slice(0, trailer)).digest('hex'))}\n`
  ) {
    throw new StateFileError(path, 'is incomplete or was changed');
  }
  const facts: ImageFacts[] = [];
  for (const line of lines) {
    facts.push(readLine(path, line));
    if (facts.length % linesPerTurn === 0) await nextTurn();
  }
  return facts;
}

function readLine(path: string, line: string): ImageFacts {
  try {
    return readFacts(JSON.parse(line));
  } catch (error) {
    if (error instanceof InvalidFacts || error instanceof SyntaxError) {
      throw new StateFileError(path, `holds a line that is no image facts (${error.message})`);
    }
    throw error;
  }
}

/** @returns the number of bytes that were written */
async function writeFile(path: string, shared: Iterable<ImageFacts>, maxBytes: number): Promise<number> {
  // Several commands of a person can run at the same time.
  const temporary = `${path}.${process.pid}.new`;
  let total = 0;
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', fileMode);
  try {
    const hash = createHash('sha256');
    let pending = '';
    const flush = async (): Promise<void> => {
      hash.update(pending);
      await file.appendFile(pending);
      pending = '';
    };
    const add = (line: string): boolean => {
      const bytes = Buffer.byteLength(line) + 1;
      if (total + bytes > maxBytes - trailerBytes) return false;
      total += bytes;
      pending += `${line}\n`;
      return true;
    };
    add(header);
    let count = 0;
    for (const facts of shared) {
      if (!add(JSON.stringify(facts))) break;
      count += 1;
      if (pending.length >= chunkBytes) await flush();
    }
    await flush();
    await file.appendFile(`${lastLine(count, hash.digest('hex'))}\n`);
    await file.sync();
  } catch (error) {
    await file.close();
    await rm(temporary, { force: true });
    throw error;
  }
  await file.close();
  await rename(temporary, path);
  return total;
}

function lastLine(count: number, sha256: string): string {
  return JSON.stringify({ count, sha256 });
}
