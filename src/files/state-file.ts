/**
 * A state file: what a process learned, for the next one. Lines of JSON: a header with format and version,
 * one line per item, the most recently used first, and a last line with their number and the SHA-256 of all
 * before it. Any other file is ignored as a whole. It is written at most every half minute (less often if it
 * is large), to a second file that then takes its name, so that a reader or a crash sees the old one or the
 * new one.
 */
import { systemClock, type Clock } from '../async/clock.ts';
import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import { FileError, readText } from './read.ts';

export interface StateFileOptions<Item> {
  readonly path: string;
  readonly log: Log;
  /** Changes with the content that is read. */
  readonly header: { readonly format: string; readonly version: number };
  /** Checks and copies an item, which another program may have written. Throws for an invalid one. */
  readonly read: (value: unknown) => Item;
  /** The most that is read or written; the least recently used items are left out. */
  readonly maxBytes: number;
  readonly clock?: Clock;
}

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
/** Names of images are public inside the cluster, but not for other users of the machine. */
const fileMode = 0o600;

export class StateFile<Item> {
  readonly #options: Required<StateFileOptions<Item>>;
  #source: () => Iterable<Item> = () => [];
  #dirty = false;
  #loading = false;
  #failing = false;
  #closed = false;
  #stopTimer: (() => void) | undefined;
  #writing: Promise<number> | undefined;
  #delayMs = writeDelayMs;

  constructor(options: StateFileOptions<Item>) {
    this.#options = { clock: systemClock, ...options };
  }

  /** Passes on the items, the most recently used last. @returns their number; 0 for an unusable file */
  async load(learn: (item: Item) => void): Promise<number> {
    const { path, log } = this.#options;
    this.#loading = true;
    try {
      const items = await readItems(this.#options);
      for (const item of items.reverse()) learn(item);
      return items.length;
    } catch (error) {
      if (error instanceof FileError && error.code === 'missing') return 0;
      log.warn({ err: error, path }, 'the state file is ignored');
      return 0;
    } finally {
      this.#loading = false;
    }
  }

  /** Sets the source of the file: the items, the most recently used first. */
  keep(items: () => Iterable<Item>): void {
    this.#source = items;
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
    const { path, log } = this.#options;
    this.#dirty = false;
    this.#writing = writeItems(this.#options, this.#source());
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

async function readItems<Item>(options: StateFileOptions<Item>): Promise<Item[]> {
  const { path, maxBytes, read } = options;
  const header = headerOf(options);
  const text = await readText(path, { maxBytes });
  if (!text.startsWith(`${header}\n`)) {
    throw new StateFileError(path, 'is not a state file, or one of another version');
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
  const items: Item[] = [];
  for (const line of lines) {
    items.push(readLine(path, line, read));
    if (items.length % linesPerTurn === 0) await nextTurn();
  }
  return items;
}

function readLine<Item>(path: string, line: string, read: (value: unknown) => Item): Item {
  try {
    return read(JSON.parse(line));
  } catch (error) {
    throw new StateFileError(path, `has a wrong line (${messageOf(error)})`);
  }
}

/** @returns the number of bytes that were written */
async function writeItems<Item>(options: StateFileOptions<Item>, items: Iterable<Item>): Promise<number> {
  const { path, maxBytes } = options;
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
    add(headerOf(options));
    let count = 0;
    for (const item of items) {
      if (!add(JSON.stringify(item))) break;
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

function headerOf({ header: { format, version } }: Pick<StateFileOptions<unknown>, 'header'>): string {
  return JSON.stringify({ format, version });
}

function lastLine(count: number, sha256: string): string {
  return JSON.stringify({ count, sha256 });
}
