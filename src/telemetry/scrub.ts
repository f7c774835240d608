/**
 * Removes known secrets from texts that leave the process. The cost of a log line does not depend on the
 * number of secrets: for almost every position, a small table shows that no secret begins there.
 */

/** Shorter texts occur in ordinary words. */
const minLength = 6;

/** More than the pull secrets and tokens of a busy webhook. The oldest are removed first. */
const maxSecrets = 2048;

/** Memory limit: tokens may have 64 KiB each. */
const maxCharacters = 1_048_576;

/** Longer secrets are tokens and keys, never in a Basic header: their base64 is not searched. */
const maxBase64Source = 512;

const replacement = '[secret]';

/** Every form of each secret, oldest first. */
const remembered = new Map<string, readonly string[]>();
/** Forms by their first characters, with the number of secrets that have each form. */
const byStart = new Map<string, Map<string, number>>();
/** Number of forms by the hash of their first characters. */
const starts = new Uint16Array(65_536);
let characters = 0;

export function remember(secret: string): void {
  const known = remembered.get(secret);
  if (known) {
    remembered.delete(secret);
    remembered.set(secret, known);
    return;
  }
  const found = forms(secret);
  if (found.length === 0) return;
  remembered.set(secret, found);
  for (const form of found) add(form);
  for (const [oldest, itsForms] of remembered) {
    if (remembered.size <= maxSecrets && (characters <= maxCharacters || remembered.size === 1)) return;
    remembered.delete(oldest);
    for (const form of itsForms) remove(form);
  }
}

/** Replaces known secrets by `[secret]`, also escaped as in JSON or a URL, or inside base64. */
export function scrub(text: string): string {
  if (remembered.size === 0) return text;
  let clean = '';
  let copied = 0;
  /** End of the current secret. Another may begin inside it and end later. */
  let end = 0;
  for (let at = 0; at + minLength <= text.length; at++) {
    if (starts[hash(text, at)] === 0) continue;
    const length = longestAt(text, at);
    if (length === 0) continue;
    if (at >= end) clean += text.slice(copied, at) + replacement;
    end = Math.max(end, at + length);
    copied = end;
  }
  return copied === 0 ? text : clean + text.slice(copied);
}

function longestAt(text: string, at: number): number {
  let longest = 0;
  for (const form of byStart.get(text.slice(at, at + minLength))?.keys() ?? []) {
    if (form.length > longest && text.startsWith(form, at)) longest = form.length;
  }
  return longest;
}

function hash(text: string, at: number): number {
  let value = 0;
  for (let index = at; index < at + minLength; index++) value = (value * 31 + text.charCodeAt(index)) | 0;
  return (value ^ (value >>> 16)) & 0xffff;
}

function add(form: string): void {
  const start = form.slice(0, minLength);
  const group = byStart.get(start) ?? new Map<string, number>();
  const holders = group.get(form) ?? 0;
  byStart.set(start, group.set(form, holders + 1));
  if (holders === 0) note(form, 1);
}

function remove(form: string): void {
  const start = form.slice(0, minLength);
  const group = byStart.get(start);
  const holders = group?.get(form);
  if (group === undefined || holders === undefined) return;
  if (holders > 1) {
    group.set(form, holders - 1);
    return;
  }
  group.delete(form);
  if (group.size === 0) byStart.delete(start);
  note(form, -1);
}

function note(form: string, change: 1 | -1): void {
  const slot = hash(form, 0);
  starts[slot] = (starts[slot] ?? 0) + change;
  characters += change * form.length;
}

function forms(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const all = new Set([
    secret,
    escaped,
    // A lone surrogate cannot be encoded.
    ...(secret.isWellFormed() ? [encodeURIComponent(secret)] : []),
    ...(secret.length <= maxBase64Source ? base64(secret) : []),
  ]);
  return [...all].filter(({ length }) => length >= minLength);
}

/**
 * The forms of a secret inside base64 of a longer text, such as `user:password`. Three bytes become four
 * characters, so the form depends on the number of bytes before the secret, and its first and last character
 * depend on its neighbors.
 */
function base64(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].flatMap((before) => {
    const bits = (before + bytes.length) * 8;
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const inner = text.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
