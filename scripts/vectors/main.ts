/**
 * `npm run vectors`: runs every vector file of the directory `$ARCHWRIGHT_VECTORS` against the product.
 *
 * Prints each failing case, then what was not compared, foreign kinds and kinds without a handler, and last `N passed, N failed`.
 * Exit code 0: none failed; 1: any failed; 2: the directory or a file cannot be read.
 */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Vector } from './handler.ts';
import { isObject } from './input.ts';
import { handlerOf, isForeign } from './kinds.ts';
import { run } from './run.ts';
import { messageOf } from '../../src/names/printable.ts';

const directoryVariable = 'ARCHWRIGHT_VECTORS';

/** Why nothing could run; printed on one line. */
class Unusable extends Error {}

interface VectorFile {
  readonly file: string;
  readonly vectors: readonly Vector[];
}

interface Tally {
  passed: number;
  failed: number;
  readonly notCompared: Map<string, number>;
  readonly foreign: Map<string, number>;
  readonly unhandled: Map<string, number>;
}

export interface Streams {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

type Print = (line: string) => void;

/**
 * Runs every vector file of a directory.
 * @returns the exit code
 */
export async function runVectors(directory: string, { out, err }: Streams): Promise<number> {
  try {
    return await runAll(await readAll(directory), (line) => out(`${line}\n`));
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
    err(`${error.message}\n`);
    return 2;
  }
}

async function runAll(files: readonly VectorFile[], print: Print): Promise<number> {
  const tally: Tally = {
    passed: 0,
    failed: 0,
    notCompared: new Map(),
    foreign: new Map(),
    unhandled: new Map(),
  };
  for (const { file, vectors } of files) {
    for (const vector of vectors) await runOne(file, vector, tally, print);
  }
  printKinds('intended differences, not compared', tally.notCompared, print);
  printKinds('kinds of other programs, skipped', tally.foreign, print);
  printKinds('kinds without a handler', tally.unhandled, print);
  print(`${tally.passed} passed, ${tally.failed} failed`);
  return tally.failed === 0 ? 0 : 1;
}

async function runOne(file: string, vector: Vector, tally: Tally, print: Print): Promise<void> {
  if (isForeign(vector.kind)) return count(tally.foreign, `${file} ${vector.kind}`);
  const handler = handlerOf(vector.kind);
  if (handler === undefined) return count(tally.unhandled, `${file} ${vector.kind}`);
  const { passed, actual, left } = await run(handler, vector);
  if (left === undefined) return count(tally.notCompared, `${file} ${vector.kind}, whole cases`);
  for (const member of left) count(tally.notCompared, `${file} ${vector.kind}, member ${member}`);
  if (passed) {
    tally.passed += 1;
    return undefined;
  }
  tally.failed += 1;
  print(`FAILED ${file} ${vector.id} (${vector.kind}): ${vector.name}`);
  print(`  input    ${JSON.stringify(vector.input)}`);
  print(`  expected ${JSON.stringify(vector.expected)}`);
  print(`  actual   ${JSON.stringify(actual)}`);
  return undefined;
}

async function readAll(directory: string): Promise<VectorFile[]> {
  if (directory === '') throw new Unusable(`set ${directoryVariable} to the directory of the vector files`);
  const entries = await readdir(directory).catch((error: unknown) => {
    throw new Unusable(`${directoryVariable}: cannot read the directory ${directory}: ${messageOf(error)}`);
  });
  const files = entries.filter((entry) => entry.endsWith('.json')).sort();
  if (files.length === 0) throw new Unusable(`${directoryVariable}: no .json file in ${directory}`);
  const read = [];
  for (const file of files) read.push({ file, vectors: await readVectors(join(directory, file)) });
  return read;
}

async function readVectors(path: string): Promise<Vector[]> {
  let document: unknown;
  try {
    document = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Unusable(`${path}: ${messageOf(error)}`);
  }
  const vectors = isObject(document) ? document['vectors'] : undefined;
  if (!Array.isArray(vectors)) throw new Unusable(`${path}: has no list "vectors"`);
  vectors.forEach((vector: unknown, index) => {
    if (!isVector(vector)) {
      throw new Unusable(`${path}: vectors[${index}] lacks one of id, kind, name, input, expected`);
    }
  });
  return vectors as Vector[];
}

function isVector(value: unknown): value is Vector {
  return (
    isObject(value) &&
    ['id', 'kind', 'name'].every((member) => typeof value[member] === 'string') &&
    isObject(value['input']) &&
    'expected' in value
  );
}

function count(kinds: Map<string, number>, kind: string): void {
  kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
}

function printKinds(title: string, kinds: ReadonlyMap<string, number>, print: Print): void {
  if (kinds.size === 0) return;
  print(`${title}:`);
  for (const [kind, cases] of kinds) print(`  ${kind}: ${cases}`);
}

if (import.meta.main) {
  process.exitCode = await runVectors(process.env[directoryVariable] ?? '', {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
  });
}
