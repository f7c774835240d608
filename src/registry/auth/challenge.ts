/**
 * Authentication challenges of a 401 response, read as by containerd (`core/remotes/docker/auth/parse.go`):
 * only the first challenge of each `WWW-Authenticate` line counts, schemes other than Bearer, Digest and
 * Basic are ignored, and the best scheme comes first. Every line is read once, left to right.
 */

/** The best scheme first. */
const schemes = ['bearer', 'digest', 'basic'] as const;

interface Challenge {
  readonly scheme: (typeof schemes)[number];
  /** Names in lower case; the last one of a repeated name wins. Values as the server wrote them. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** A token of RFC 2616, section 2.2: visible ASCII without separators. */
const tokenPattern = /[!#$%&'*+\-.^_`|~0-9A-Za-z]*/y;
const spacePattern = /[ \t\r\n]*/y;

/** @param lines of one response, not joined with commas @returns Bearer before Digest before Basic */
export function parseChallenges(lines: readonly string[]): Challenge[] {
  const challenges = lines.flatMap((line) => {
    const name = match(tokenPattern, line, 0).toLowerCase();
    const scheme = schemes.find((known) => known === name);
    return scheme ? [{ scheme, parameters: parseParameters(line, scheme.length) }] : [];
  });
  return challenges.sort((a, b) => schemes.indexOf(a.scheme) - schemes.indexOf(b.scheme));
}

function parseParameters(line: string, start: number): Map<string, string> {
  const parameters = new Map<string, string>();
  let position = start;
  for (;;) {
    position += match(spacePattern, line, position).length;
    const name = match(tokenPattern, line, position);
    position += name.length;
    if (name === '' || line[position] !== '=') return parameters;
    const value = parseValue(line, position + 1);
    parameters.set(name.toLowerCase(), value.text);
    position = value.end + match(spacePattern, line, value.end).length;
    if (line[position] !== ',') return parameters;
    position += 1;
  }
}

/** A token, or a quoted string with backslash escapes. An unterminated string is empty and the last. */
function parseValue(line: string, start: number): { text: string; end: number } {
  if (line[start] !== '"') {
    const text = match(tokenPattern, line, start);
    return { text, end: start + text.length };
  }
  const pieces: string[] = [];
  let from = start + 1;
  for (let index = from; index < line.length; index += 1) {
    const character = line[index];
    if (character !== '"' && character !== '\\') continue;
    pieces.push(line.slice(from, index));
    if (character === '"') return { text: pieces.join(''), end: index + 1 };
    from = index + 1;
    index += 1;
  }
  return { text: '', end: line.length };
}

function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** A Bearer challenge that leads to no token. */
export class InvalidChallenge extends Error {
  override readonly name = 'InvalidChallenge';
}
