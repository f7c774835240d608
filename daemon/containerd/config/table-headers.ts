/**
 * The table headers of a TOML text in the order in which they stand there. containerd (since 2.0) takes the order of hosts
 * from it, which no parser that gives objects has kept: a header of a subtable counts too, and a host is there twice
 * when another stands between two of its headers.
 *
 * It runs over texts that the parser has accepted, so it only has to know where things end; over any other it ends too.
 */

/** @returns the keys of `[a."b".c]` as `['a', 'b', 'c']`; headers of arrays of tables (`[[a]]`) are left out */
export function tableHeaders(text: string): string[][] {
  const headers: string[][] = [];
  let at = 0;
  while (at < text.length) {
    at = skipBlank(text, at);
    if (text.startsWith('[[', at)) at = endOfLine(text, readKey(text, at + 2).end);
    else if (text[at] === '[') {
      const key = readKey(text, at + 1);
      headers.push(key.parts);
      at = endOfLine(text, key.end);
    } else at = skipPair(text, at);
  }
  return headers;
}

/** Passes white space, line ends and comments. */
function skipBlank(text: string, from: number): number {
  let at = from;
  for (;;) {
    while (/[ \t\r\n]/.test(text.charAt(at))) at += 1;
    if (text[at] !== '#') return at;
    at = endOfLine(text, at);
  }
}

function endOfLine(text: string, from: number): number {
  const newline = text.indexOf('\n', from);
  return newline < 0 ? text.length : newline + 1;
}

/** Reads a dotted key up to what cannot belong to it. */
function readKey(text: string, from: number): { readonly parts: string[]; readonly end: number } {
  const parts: string[] = [];
  let at = from;
  for (;;) {
    at = skipSpaces(text, at);
    const start = at;
    const quote = text.charAt(at);
    if (quote === '"' || quote === "'") {
      at = endOfString(text, at);
      const inner = text.slice(start + 1, at - 1);
      parts.push(quote === '"' ? unescaped(inner) : inner);
    } else {
      while (/[A-Za-z0-9_-]/.test(text.charAt(at))) at += 1;
      parts.push(text.slice(start, at));
    }
    at = skipSpaces(text, at);
    if (text[at] !== '.') return { parts, end: at };
    at += 1;
  }
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t') at += 1;
  return at;
}

/** Passes a key and its value: to the end of the line on which no bracket and no string is open. */
function skipPair(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const letter = text.charAt(at);
    if (letter === '"' || letter === "'") at = endOfString(text, at);
    else if (letter === '#') at = endOfLine(text, at) - (text.includes('\n', at) ? 1 : 0);
    else if (letter === '\n' && depth <= 0) return at + 1;
    else {
      if (letter === '[' || letter === '{') depth += 1;
      if (letter === ']' || letter === '}') depth -= 1;
      at += 1;
    }
  }
  return at;
}

/** The place behind a string of any of the four kinds; the end of the text where it is not closed. */
function endOfString(text: string, from: number): number {
  const quote = text.charAt(from);
  const long = text.startsWith(quote.repeat(3), from);
  const escapes = quote === '"';
  let at = from + (long ? 3 : 1);
  while (at < text.length) {
    if (escapes && text[at] === '\\') at += 2;
    else if (text[at] !== quote) at += 1;
    else if (!long) return at + 1;
    else {
      let quotes = 0;
      // Up to two quotes may stand before the three that close it.
      while (quotes < 5 && text[at + quotes] === quote) quotes += 1;
      if (quotes >= 3) return at + quotes;
      at += quotes;
    }
  }
  return text.length;
}

const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  t: '\t',
  n: '\n',
  f: '\f',
  r: '\r',
  e: '\u001B',
};

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/gs,
    (_, x?: string, u?: string, long?: string, letter?: string) => {
      const code = x ?? u ?? long;
      if (code === undefined) return escapes[letter ?? ''] ?? letter ?? '';
      const point = Number.parseInt(code, 16);
      return point <= 0x10ffff ? String.fromCodePoint(point) : '';
    },
  );
}
