/**
 * Parsers of external data as fuzz targets: a few hundred inputs each in unit tests, a chosen number in
 * `npm run fuzz`.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { inputs } from './inputs.ts';

export interface FuzzTarget {
  readonly name: string;
  /** Valid documents. Inputs are damaged copies. */
  readonly examples: readonly string[];
  /** Words and punctuation of the language, besides those in the examples. */
  readonly words: readonly string[];
  /**
   * Passes the input, or its text, to the parser, as the program would. Throws for invalid input. The size of its
   * result is limited.
   */
  readonly feed: (input: Buffer, text: string) => unknown;
  /** Errors that the program expects from this parser. Default: none. */
  readonly expected?: readonly ErrorClass[];
  /** Inputs in each run of the unit tests, for parsers of short texts. Default: 30; exhaustive: 300. */
  readonly runs?: number;
  /** Relative number of inputs. Default: 10, for about 80 µs each; faster parsers get more. */
  readonly share?: number;
  /** For a process: throws if it does not respond. Called after each batch. @returns its peak RSS in MiB */
  readonly check?: () => Promise<number>;
  /** Releases resources of `feed`. */
  readonly close?: () => Promise<void>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- constructors of errors take all kinds of parameters
type ErrorClass = abstract new (...parameters: any[]) => Error;

/** Limit of CPU time for a generated input. The slowest takes some milliseconds. */
export const maxInputMs = 2000;

/**
 * Limit for the size of a result, which may be larger than its input because of paths, defaults and messages.
 * Inputs have up to a few hundred kilobytes.
 */
export const maxOutput = { times: 40, bytes: 64 * 1024 };

/** Limit for an error message, which is shown to people and logged. */
const maxMessageLength = 8192;

/** An input that is no JSON, for a parser of parsed JSON. */
export class NotJson extends Error {}

/** @throws NotJson */
export function parsed(input: Buffer): unknown {
  try {
    return JSON.parse(input.toString('utf8'));
  } catch {
    throw new NotJson();
  }
}

/** A JSON object. @throws NotJson for other values, which the API server does not store */
export function object(input: Buffer): Readonly<Record<string, unknown>> {
  const value = parsed(input);
  if (typeof value !== 'object' || value === null) throw new NotJson();
  return value as Readonly<Record<string, unknown>>;
}

/** An input that broke the rule in `message`. */
export class FuzzFinding extends Error {
  readonly code = 'finding';
  readonly temporary = false;
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'FuzzFinding';
  }
}

/**
 * Feeds one input.
 * @throws FuzzFinding
 */
export async function feed(target: FuzzTarget, input: Buffer): Promise<void> {
  const start = performance.now();
  const output = await outputOf(target, input);
  if (output > input.length * maxOutput.times + maxOutput.bytes)
    throw new FuzzFinding(`${output} characters of output for ${input.length} bytes`);
  if (performance.now() - start <= maxInputMs) return;
  // Other processes slow this one down, so a second attempt measures its CPU time.
  const before = process.cpuUsage();
  await outputOf(target, input);
  const { user, system } = process.cpuUsage(before);
  const took = (user + system) / 1000;
  if (took > maxInputMs) throw new FuzzFinding(`took ${Math.round(took)} ms`);
}

/** @returns the size of the result */
async function outputOf({ feed, expected = [] }: FuzzTarget, input: Buffer): Promise<number> {
  try {
    return sizeOf(await feed(input, input.toString('utf8')));
  } catch (error) {
    if (![...expected, NotJson].some((type) => error instanceof type)) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      throw new FuzzFinding(`an unexpected error: ${text}`, error);
    }
    const { message } = error as Error;
    if (message.length > Math.max(maxMessageLength, 2 * input.length))
      throw new FuzzFinding(`a message of ${message.length} characters: ${message.slice(0, 200)}`, error);
    return 0;
  }
}

/** Number of characters and members of a value. */
function sizeOf(value: unknown): number {
  let size = 0;
  const open: unknown[] = [value];
  const seen = new Set<unknown>();
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'string') size += next.length;
    else if (typeof next === 'object' && next !== null && !seen.has(next)) {
      seen.add(next);
      if (Array.isArray(next)) for (const item of next) open.push(item);
      else for (const item of next instanceof Map ? [...next].flat() : Object.values(next)) open.push(item);
      size += 1;
    }
  }
  return size;
}

/** The property that every input satisfies the rules of a target. */
export function property(target: FuzzTarget): fc.IAsyncProperty<[Buffer]> {
  return fc.asyncProperty(inputs(target), (input) => feed(target, input));
}

/**
 * Feeds generated inputs in a unit test.
 * @throws if one of them breaks a rule, with the seed that leads to it
 */
export function assertFuzz(target: FuzzTarget, numRuns: number, seed = 1): Promise<void> {
  return fc.assert(property(target), { numRuns, seed, includeErrorInReport: true });
}

/** The result of `read`, or `undefined` if it throws one of these errors. */
export async function unlessRefused<T>(
  expected: readonly ErrorClass[],
  read: () => T | Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (expected.some((type) => error instanceof type)) return undefined;
    throw error;
  }
}

/** @throws TypeError if a rule of a target does not hold */
export function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new TypeError(otherwise);
}

/** A directory that `feed` fills, until `close`: in memory if possible, because disks are slow. */
export class Directory {
  #path: string | undefined;
  readonly #made = new Set<string>();

  write(files: Readonly<Record<string, string | Buffer>>): string {
    this.#path ??= mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'archwright-fuzz-'));
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.#path, name);
      if (!this.#made.has(path)) mkdirSync(dirname(path), { recursive: true });
      this.#made.add(path);
      writeFileSync(path, content);
    }
    return this.#path;
  }

  remove(): Promise<void> {
    if (this.#path !== undefined) rmSync(this.#path, { recursive: true });
    this.#path = undefined;
    this.#made.clear();
    return Promise.resolve();
  }
}
