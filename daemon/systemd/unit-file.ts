/** The syntax of systemd's units and environment files (systemd.syntax(7), systemd.exec(5), systemd src/basic/env-file.c). */

export interface Assignment {
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

/** The assignments of a unit or drop-in, in order. Lines that are none are skipped, as systemd does. */
export function parseUnit(text: string): readonly Assignment[] {
  const found: Assignment[] = [];
  let section = '';
  let continued = '';
  for (const line of text.split(/\r?\n/)) {
    // A comment does not end a continued line.
    if (/^\s*[#;]/.test(line)) continue;
    const whole = continued + line;
    continued = '';
    if (whole.endsWith('\\')) {
      continued = `${whole.slice(0, -1)} `;
      continue;
    }
    const header = /^\s*\[([^\]]*)\]\s*$/.exec(whole);
    if (header) section = header[1] ?? '';
    const [, key, value] = /^\s*([A-Za-z]+)\s*=(.*)$/.exec(whole) ?? [];
    if (!header && key !== undefined && value !== undefined)
      found.push({ section, key, value: value.trim() });
  }
  return found;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', s: ' ' };

/** The words of a value: quotes group, backslashes escape as in C, `%%` is a percent sign. */
export function wordsOf(value: string): readonly string[] {
  const words: string[] = [];
  const part = /\s+|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:[^\s"'\\]|\\.)+)|(.)/gy;
  let word: string | undefined;
  for (const [whole, double, single, plain, other] of value.matchAll(part)) {
    const text = double ?? single ?? plain ?? other;
    if (text === undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + (other === undefined ? unescaped(text) : whole);
  }
  if (word !== undefined) words.push(word);
  return words.map((each) => each.replaceAll('%%', '%'));
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:x([0-9A-Fa-f]{2})|(.))/g, (_, hex: string | undefined, letter: string) =>
    hex === undefined ? (escapes[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** `NAME=value`; undefined for any other text. */
export function variableOf(text: string): readonly [name: string, value: string] | undefined {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/.exec(text) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

/** The variables of an environment file, in order. */
export function parseEnvironmentFile(text: string): readonly (readonly [name: string, value: string])[] {
  const line =
    /^[ \t]*(?:[#;].*|([^\n=]*)=((?:[ \t]*(?:'[^']*'|"(?:[^"\\]|\\[\s\S])*"))+[^\n]*|(?:[^\n\\]|\\[\s\S])*)|[^\n]*)(?:\n|$)/gmy;
  const found: (readonly [string, string])[] = [];
  for (const [whole, name, value] of text.matchAll(line)) {
    if (whole === '') break;
    const pair = name === undefined ? undefined : variableOf(`${name.trim()}=${valueOf(value ?? '')}`);
    if (pair) found.push(pair);
  }
  return found;
}

/** Quoted parts follow each other; anything unquoted ends at the end of the line, without the spaces before it. */
function valueOf(text: string): string {
  const part = /[ \t]*(?:'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|([^]+))/gy;
  let value = '';
  for (const [, single, double, plain] of text.matchAll(part)) {
    if (single !== undefined) value += single;
    else if (double !== undefined) value += double.replaceAll(/\\(["\\`$])|\\\n/g, '$1');
    else
      value += (plain ?? '')
        .trimEnd()
        .replaceAll(/\\([^])/g, (_, char: string) => (char === '\n' ? '' : char));
  }
  return value;
}
