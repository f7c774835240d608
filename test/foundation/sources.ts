/** The program's source files and their imports. */
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export interface Import {
  /** Path of the imported file from the root, or the name of a package. */
  readonly target: string;
  /** Whether only types are imported. */
  readonly typeOnly: boolean;
}

export interface Source {
  /** Path from the root, such as `src/placement/decide.ts`. */
  readonly path: string;
  readonly lines: number;
  readonly imports: readonly Import[];
}

const statement =
  /^(?:import|export)\s+(type\s+)?(?:([^'";]*?)\s+from\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm;

/** The imports and re-exports of a source text. */
export function importsOf(path: string, text: string): Import[] {
  return [...text.matchAll(statement)].map(([, type, names, from, dynamic]) => {
    const specifier = from ?? dynamic ?? '';
    const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier;
    return { target, typeOnly: type !== undefined || onlyTypes(names) };
  });
}

/** `{ type A, type B }` too imports only types. */
function onlyTypes(names: string | undefined): boolean {
  const inner = /^\{(.*)\}$/s.exec(names?.trim() ?? '')?.[1];
  const each =
    inner
      ?.split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '') ?? [];
  return each.length > 0 && each.every((name) => name.startsWith('type '));
}

/** Reads every source file of the program. */
export function sources(): Source[] {
  return globSync('{cmd,src,daemon}/**/*.{ts,js}', { cwd: root, exclude: ['**/*.d.ts'] })
    .sort()
    .map((path) => {
      const text = readFileSync(`${root}${path}`, 'utf8');
      return { path, lines: text.split('\n').length - 1, imports: importsOf(path, text) };
    });
}

/** The files that these import, directly or indirectly, and themselves. */
export function reachedFrom(
  imports: ReadonlyMap<string, readonly string[]>,
  entries: readonly string[],
): ReadonlySet<string> {
  const reached = new Set<string>(entries);
  // A set that grows is iterated to its end.
  for (const path of reached) for (const target of imports.get(path) ?? []) reached.add(target);
  return reached;
}
