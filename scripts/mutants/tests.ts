/** The tests of a source file: those of its room that import it, directly or not, the nearest first. */
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importsOf } from '../../test/foundation/sources.ts';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** Tests that start processes may run the whole program. */
const program = { starts: /\b(?:spawn|fork|execFile)/, entry: 'cmd/program/main.ts' };

function readImporters(): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>();
  for (const path of globSync('{src,daemon,cmd,test}/**/*.ts', { cwd: root, exclude: ['test/e2e/**'] })) {
    const text = readFileSync(`${root}${path}`, 'utf8');
    const starts = path.startsWith('test/') && program.starts.test(text);
    for (const target of [...importsOf(path, text).map((each) => each.target), starts ? program.entry : ''])
      importers.set(target, [...(importers.get(target) ?? []), path]);
  }
  return importers;
}

let importers: ReturnType<typeof readImporters> | undefined;

/** @returns paths below `test/`; the test of the same name, then those of its folder and the folders above */
export function testsOf(path: string): string[] {
  importers ??= readImporters();
  const reached = new Set([path]);
  for (const each of reached) for (const importer of importers.get(each) ?? []) reached.add(importer);
  const own = path.replace(/^src\//, '').replace(/\.ts$/, '');
  const room = `test/${own.split('/')[0]}/`;
  /** The number of folders that it has in common with the file; that of the same name has most. */
  const nearness = (test: string): number => {
    if (test === `test/${own}.test.ts`) return Number.POSITIVE_INFINITY;
    const folders = dirname(own).split('/');
    const others = dirname(test).split('/').slice(1);
    const first = folders.findIndex((folder, index) => folder !== others[index]);
    return first < 0 ? folders.length : first;
  };
  return [...reached]
    .filter((each) => each.startsWith(room) && each.endsWith('.test.ts'))
    .sort()
    .sort((a, b) => nearness(b) - nearness(a))
    .map((each) => each.slice('test/'.length));
}
