/** Files and exports of the program that only tests reach. */
import { globSync, readFileSync } from 'node:fs';
import { importsOf, reachedFrom, root, sources } from './sources.ts';
import t from 'tap';

const exported =
  /^export (?:async )?(?:abstract )?(?:function\*?|const|let|class|interface|type) ([A-Za-z_$][\w$]*)/gm;

/** The names that a source text exports by declarations. */
function exportsOf(text: string): string[] {
  return [...text.matchAll(exported)].map(([, name = '']) => name);
}

/** Whether a text contains the name as a word more than `most` times. */
function mentions(text: string, name: string, most: number): boolean {
  return (
    [...text.matchAll(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`, 'g'))].length > most
  );
}

/**
 * Exports that only tests use: neither their own file, nor another file of the program, nor scripts and
 * benchmarks.
 */
function exportsForTests(): string[] {
  const read = (patterns: string[], exclude: string[] = []): { path: string; text: string }[] =>
    globSync(patterns, { cwd: root, exclude }).map((path) => ({
      path,
      text: readFileSync(`${root}${path}`, 'utf8'),
    }));
  const program = read(['{cmd,src,daemon}/**/*.ts']);
  const users = [
    ...program,
    ...read(['{scripts,bench,examples}/**/*.ts'], ['scripts/vectors/**', 'scripts/fuzz/**']),
  ].map(({ path, text }) => ({
    text,
    imports: new Set(importsOf(path, text).map(({ target }) => target)),
  }));
  return program.flatMap(({ path, text }) =>
    exportsOf(text)
      .filter((name) => !mentions(text, name, 1))
      .filter((name) => !users.some(({ imports, text }) => imports.has(path) && mentions(text, name, 0)))
      .map((name) => `${path}: ${name}`),
  );
}

const all = sources();

t.test('the program has no code that only tests use', async (t) => {
  const imports = new Map(all.map((source) => [source.path, source.imports.map(({ target }) => target)]));
  const reached = reachedFrom(imports, ['cmd/archwright.js', 'cmd/archwright.ts']);
  t.strictSame(
    [...imports.keys()].filter((path) => !reached.has(path)),
    [],
    'files',
  );
  t.strictSame(exportsForTests(), [], 'exports');
  t.strictSame(
    [
      ...reachedFrom(
        new Map([
          ['a', ['b']],
          ['b', []],
          ['c', ['b']],
        ]),
        ['a'],
      ),
    ],
    ['a', 'b'],
  );
});

t.test('exports are found in a source text', async (t) => {
  const text = `export const a = 1;
export async function b(): Promise<void> {}
export function* c() {}
export class D {}
export abstract class E {}
export interface F {}
export type G = string;
const h = 1;
  export const indented = 2;
`;
  t.strictSame(exportsOf(text), ['a', 'b', 'c', 'D', 'E', 'F', 'G']);
});
