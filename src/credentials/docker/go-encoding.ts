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
  constructor() {
    super('illegal base64 data');
  }
}

/**
 * Decodes base64 as Go's encoding/base64: line breaks are skipped anywhere; other characters outside the standard
 * alphabet and wrong padding are errors. (`Buffer.from` accepts nearly everything.)
 * @param padding whether `=` must fill the last group, or must not
 * @throws Base64Error
 */
export function decodeBase64(text: string, padding: 'padded' | 'unpadded'): Buffer {
  const [, letters, fill = ''] = /^([A-Za-z0-9+/]*)(={0,2})$/.exec(text.replaceAll(/[\r\n]/g, '')) ?? [];
  const rest = (letters?.length ?? 1) % 4;
  const missing = padding === 'padded' ? (4 - rest) % 4 : 0;
  if (rest === 1 || fill.length !== missing) throw new Base64Error();
  return Buffer.from(text, 'base64');
}

/**
 * `auth` as container runtimes read it: padded base64 of `username:password`, without NUL bytes around the
 * password. @returns undefined without a colon @throws Base64Error
 */
export function decodeLogin(
  auth: string,
): { readonly username: string; readonly password: string } | undefined {
  const text = decodeBase64(auth, 'padded').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) return undefined;
  return { username: text.slice(0, colon), password: text.slice(colon + 1).replace(/^\0+|(?<!\0)\0+$/g, '') };
}
