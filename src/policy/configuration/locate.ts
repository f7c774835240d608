/**
 * Finds the line on which a key of a TOML document stands, because the parser gives values without their places.
 * It runs over texts that the parser has accepted, so it only has to know where things begin and end.
 */
import type { Path } from '../settings/setting.ts';

/** Lines by path, counted from 1. */
type Lines = Map<string, number>;

/**
 * Notes the line of each table, key, and element of a list.
 * @param text a document that is valid TOML
 * @returns for a path, its line, or that of the nearest table around it that the text writes out
 */
export function locate(text: string): (path: Path) => number {
  const lines = scan(text);
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const line = lines.get(identity(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  };
}

function identity(path: Path): string {
  return JSON.stringify(path);
}

/** Keys with escapes that JSON does not know are found by the table around them. */
function unquoted(step: string): string {
  if (!step.startsWith('"')) return step.startsWith("'") ? step.slice(1, -1) : step;
  try {
    return JSON.parse(step) as string;
  } catch {
    return step;
  }
}

function scan(text: string): Lines {
  const lines: Lines = new Map();
  /** How many `[[name]]` there are so far, by path. */
  const counts = new Map<string, number>();
  let at = 0;
  let line = 1;
  let table: Path = [];

  function note(path: Path): void {
    const key = identity(path);
    if (!lines.has(key)) lines.set(key, line);
  }

  function forward(to: number): void {
    while (at < to) if (text[at++] === '\n') line++;
  }

  /** Passes white space, line ends, commas and comments. */
  function blank(): void {
    const found = /(?:[\s,\uFEFF]|#[^\n]*)*/y;
    found.lastIndex = at;
    forward(at + (found.exec(text)?.[0].length ?? 0));
  }

  /** Passes what matches here, and gives it. */
  function take(pattern: RegExp): string {
    const sticky = new RegExp(pattern, 'sy');
    sticky.lastIndex = at;
    const found = sticky.exec(text)?.[0] ?? '';
    forward(at + found.length);
    return found;
  }

  function key(): string[] {
    const steps: string[] = [];
    do {
      take(/[ \t]*/);
      const step = take(/"(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+/);
      steps.push(unquoted(step));
      take(/[ \t]*/);
    } while (take(/\./) !== '');
    return steps;
  }

  function pair(container: Path): void {
    const start = at;
    const steps = key();
    for (const index of steps.keys()) note([...container, ...steps.slice(0, index + 1)]);
    take(/=[ \t]*/);
    value([...container, ...steps]);
    // Whatever this scanner misjudges, it must end.
    if (at === start) forward(at + 1);
  }

  function value(path: Path): void {
    if (take(/\[/) !== '') {
      blank();
      for (let index = 0; at < text.length && take(/\]/) === ''; index++) {
        const start = at;
        note([...path, index]);
        value([...path, index]);
        blank();
        if (at === start) forward(at + 1);
      }
    } else if (take(/\{/) !== '') {
      blank();
      while (at < text.length && take(/\}/) === '') {
        pair(path);
        blank();
      }
    } else {
      take(/"""(?:\\.|[^\\])*?"{3,5}|'''.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|[^\s,\]}#]+/);
    }
  }

  function header(isArray: boolean): void {
    const steps = key();
    const path: (string | number)[] = [];
    for (const [index, step] of steps.entries()) {
      path.push(step);
      note(path);
      const id = identity(path);
      const count = counts.get(id) ?? 0;
      const isNew = isArray && index === steps.length - 1;
      if (isNew) counts.set(id, count + 1);
      // A header inside an array of tables means its newest table.
      if (isNew || count > 0) path.push(isNew ? count : count - 1);
      note(path);
    }
    take(/\]{1,2}/);
    table = path;
  }

  for (blank(); at < text.length; blank()) {
    const bracket = take(/\[{1,2}/);
    if (bracket === '') pair(table);
    else header(bracket === '[[');
  }
  return lines;
}
