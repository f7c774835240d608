/** Syntax of systemd's units and environment files (systemd.syntax(7), systemd.exec(5), env-file.c). */

export interface Assignment {
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

/** An odd number of backslashes: pairs of them escape each other. */
const continues = /(?<!\\)\\(?:\\\\)*$/;

/** The assignments of a unit or drop-in, in order. Lines that are none are skipped, as systemd does. */
export function parseUnit(text: string): readonly Assignment[] {
  const found: Assignment[] = [];
  let section = '';
  let continued: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    // A comment does not end a continued line.
    if (/^\s*[#;]/.test(line)) continue;
    if (continues.test(line)) {
      continued.push(line.slice(0, -1));
      continue;
    }
    const whole = [...continued, line].join(' ');
    continued = [];
    const header = /^\s*\[([^\]]*)\]\s*$/.exec(whole);
    if (header) section = header[1] ?? '';
    const [, key, value] = /^\s*([A-Za-z]+)\s*=(.*)$/s.exec(whole) ?? [];
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

/** `NAME=value`; `undefined` for other texts, and for a NUL, which an environment cannot hold. */
export function variableOf(text: string): readonly [name: string, value: string] | undefined {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([^\0]*)$/.exec(text) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

/**
 * A comment, a variable, or an invalid line. A value is quoted parts, which may have several lines, and
 * then unquoted text to the end of the line. The end of the file ends an open quote. No part fails after it
 * has read on, so the time is linear.
 */
const entry =
  /[ \t\r\n]*(?:[#;][^\r\n]*|([^\r\n=]*)=((?:[ \t]*(?:'[^']*'?|"(?:[^"\\]|\\[^]?)*"?))*)[ \t]*((?:[^\r\n\\]|\\[^]?)*)|[^\r\n]+)/gy;

/** The variables of an environment file, in order. */
export function parseEnvironmentFile(text: string): readonly (readonly [name: string, value: string])[] {
  const found: (readonly [string, string])[] = [];
  for (const [, name, quoted = '', plain = ''] of text.matchAll(entry)) {
    const pair =
      name === undefined ? undefined : variableOf(`${name.trim()}=${unquoted(quoted)}${plainText(plain)}`);
    if (pair) found.push(pair);
  }
  return found;
}

/** Quoted parts. In double quotes, a backslash escapes only four characters and the line end. */
function unquoted(text: string): string {
  let value = '';
  for (const [, single, double] of text.matchAll(/[ \t]*(?:'([^']*)'?|"((?:[^"\\]|\\[^]?)*)"?)/gy))
    value += single ?? double?.replaceAll(/\\(?:(["\\`$])|\n|$)/g, '$1') ?? '';
  return value;
}

/** Spaces at the end belong to the value only behind a backslash. */
function plainText(text: string): string {
  return [...text.matchAll(/\\([^]?)|([ \t]+$)|[^\\ \t]+|[ \t]+/g)]
    .map(([whole, escaped, end]) => (end === undefined ? (escaped?.replace(/[\r\n]/, '') ?? whole) : ''))
    .join('');
}
