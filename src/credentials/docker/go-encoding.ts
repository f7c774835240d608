/** Go's rules for the names of JSON members (encoding/json) and for base64 (encoding/base64). */

/**
 * Whether a member's name means a field, as encoding/json folds names: ASCII case, and the two letters
 * outside ASCII whose simple case folding is an ASCII letter (U+017F for s, U+212A for k).
 * @param field in lower case
 */
export function namesField(name: string, field: string): boolean {
  return name.replaceAll('\u017f', 's').toLowerCase() === field;
}

export class Base64Error extends Error {
  override readonly name = 'Base64Error';
  constructor(offset: number) {
    super(`illegal base64 data at input byte ${offset}`);
  }
}

/**
 * Decodes base64 as Go's encoding/base64: carriage returns and newlines are skipped anywhere, any other
 * character outside the standard alphabet is an error, and so is wrong padding. (`Buffer.from` accepts nearly
 * everything.)
 * @param padding whether `=` must fill the last group, or must not
 * @throws Base64Error
 */
export function decodeBase64(text: string, padding: 'padded' | 'unpadded'): Buffer {
  const offset = faultOf(text, padding === 'padded');
  if (offset !== undefined) throw new Base64Error(offset);
  return Buffer.from(text, 'base64');
}

/**
 * `auth` as container runtimes read it: padded base64 of `username:password`. NUL bytes around the password are
 * trimmed.
 * @returns undefined without a colon
 * @throws Base64Error
 */
export function decodeLogin(
  auth: string,
): { readonly username: string; readonly password: string } | undefined {
  const text = decodeBase64(auth, 'padded').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) return undefined;
  return { username: text.slice(0, colon), password: text.slice(colon + 1).replace(/^\0+|(?<!\0)\0+$/g, '') };
}

/** Position of the error that Go would report (encoding/base64 `decodeQuantum`), if any. */
function faultOf(text: string, padded: boolean): number | undefined {
  /** Letters in the current group of four. */
  let group = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (isNewline(letter)) continue;
    if (/[A-Za-z0-9+/]/.test(letter)) {
      group = (group + 1) % 4;
      continue;
    }
    return letter === '=' && padded && group > 1 ? faultOfPadding(text, at, group) : at;
  }
  return group === 1 || (group > 0 && padded) ? text.length - group : undefined;
}

/** The same for the text after the first `=`, at `from`. */
function faultOfPadding(text: string, from: number, group: number): number | undefined {
  let at = skipNewlines(text, from + 1);
  if (group === 2) {
    if (at === text.length) return at;
    if (text[at] !== '=') return at - 1;
    at = skipNewlines(text, at + 1);
  }
  return at < text.length ? at : undefined;
}

function skipNewlines(text: string, from: number): number {
  let at = from;
  while (isNewline(text.charAt(at))) at += 1;
  return at;
}

function isNewline(letter: string): boolean {
  return letter === '\n' || letter === '\r';
}
