import t from 'tap';
import { exportsForTests, exportsOf, unreachedFiles } from './reachable.ts';
import { sources, type Source } from './sources.ts';

const all = sources();

t.test('the program has no code that only tests use', async (t) => {
  t.strictSame(unreachedFiles(all, ['cmd/archwright.js', 'cmd/archwright.ts']), [], 'files');
  t.strictSame(exportsForTests(), [], 'exports');
});

const source = (path: string, ...targets: string[]): Source => ({
  path,
  lines: 1,
  imports: targets.map((target) => ({ target, typeOnly: true })),
});

t.test('the check finds unreached files', async (t) => {
  const found = unreachedFiles(
    [source('entry', 'a'), source('a', 'b'), source('b'), source('c', 'b')],
    ['entry'],
  );
  t.strictSame(found, ['c']);
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
