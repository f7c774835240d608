/** Runs tests in a copy of the tree, with or without a mutant. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Mutant } from './mutate.ts';
import { root, testsOf } from './tests.ts';

/** Not needed by tests of rooms. */
const omitted = new Set(['.git', '.tap', 'dist', 'node_modules']);

export interface Outcome {
  readonly result: 'passed' | 'failed' | 'timed out';
  readonly ms: number;
  /** The end of what the tests printed. */
  readonly output: string;
}

/** Enough to see which assertion failed. */
const outputLength = 8_000;

/** A copy of the working tree, so that nobody sees a mutant in it. */
export async function copyTree(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'archwright-mutants-'));
  const filter = (path: string): boolean => !omitted.has(relative(root, path));
  await cp(root, copy, { recursive: true, filter });
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

export const removeTree = (copy: string): Promise<void> => rm(copy, { recursive: true });

/**
 * Runs tests up to the first failure.
 * @param tests files and folders of `test/`, in order
 */
export async function runTests(copy: string, tests: readonly string[], limitMs: number): Promise<Outcome> {
  const startedAt = performance.now();
  const { NODE_OPTIONS: _loaders, ...env } = process.env;
  const child = spawn(process.execPath, ['test/support/room.ts', ...tests], {
    cwd: copy,
    env: { ...env, NODE_COMPILE_CACHE: join(copy, '.cache'), TAP_TIMEOUT: String(limitMs / 1000) },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Its own process group, so that programs which the tests started end with it.
    detached: true,
  });
  let output = '';
  let result: Outcome['result'] | undefined;
  function end(as: Outcome['result']): void {
    result ??= as;
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
  function read(text: string): void {
    output = (output + text).slice(-outputLength);
    if (/^ *not ok (?!.*# (?:TODO|SKIP))/m.test(output)) end('failed');
  }
  child.stdout.setEncoding('utf8').on('data', read);
  child.stderr
    .setEncoding('utf8')
    .on('data', (text: string) => (output = (output + text).slice(-outputLength)));
  const timer = setTimeout(() => end('timed out'), limitMs);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  end(code === 0 ? 'passed' : 'failed');
  return { result: result ?? 'failed', ms: performance.now() - startedAt, output };
}

/** Runs the tests of the file with a mutant, and takes the change back. */
export async function runMutant(
  copy: string,
  path: string,
  mutant: Mutant,
  limitMs: number,
): Promise<Outcome> {
  const { start, before, after } = mutant;
  const file = join(copy, path);
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.slice(0, start) + after + text.slice(start + before.length));
  try {
    return await runTests(copy, testsOf(path), limitMs);
  } finally {
    await writeFile(file, text);
  }
}
