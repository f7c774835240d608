/**
 * Secrets are wrapped where they are born and opened only where they are sent. A wrapped secret prints as
 * `[secret]` whatever prints it (string, JSON, util.inspect), and the log scrubs its text from every line, so a
 * message that quotes a server's echo of it stays clean too.
 */
import { inspect } from 'node:util';

const remembered = new Map<string, true>();

/** More than the pull secrets a busy webhook holds at once; the oldest are forgotten first. */
const maxRemembered = 4096;

/** Shorter texts occur in ordinary words; scrubbing them would garble every line. */
const minScrubbed = 6;

declare const brand: unique symbol;

/** An opaque holder of one secret text. */
export interface Secret {
  readonly [brand]: 'secret';
}

const texts = new WeakMap<object, string>();

const printed = {
  toString: () => '[secret]',
  toJSON: () => '[secret]',
  [inspect.custom]: () => '[secret]',
};

/**
 * Wraps a secret text.
 * @param text the secret itself
 * @returns a value that can be passed around and printed without harm
 */
export function secret(text: string): Secret {
  const holder = Object.freeze(Object.create(printed) as Secret);
  texts.set(holder, text);
  remember(text);
  return holder;
}

/** Opens a secret. Only code that sends it to its owner may call this. */
export function reveal(holder: Secret): string {
  const text = texts.get(holder);
  if (text === undefined) throw new TypeError('not a secret');
  return text;
}

/**
 * Replaces every remembered secret in a text, also in its JSON-escaped and base64 forms.
 * @param line any text that is about to leave the process
 */
export function scrub(line: string): string {
  let clean = line;
  for (const text of remembered.keys()) {
    if (clean.includes(text)) clean = clean.replaceAll(text, '[secret]');
  }
  return clean;
}

function remember(text: string): void {
  for (const form of forms(text)) {
    if (form.length < minScrubbed) continue;
    remembered.delete(form);
    remembered.set(form, true);
  }
  while (remembered.size > maxRemembered) {
    const oldest = remembered.keys().next();
    if (oldest.done) return;
    remembered.delete(oldest.value);
  }
}

function forms(text: string): Set<string> {
  return new Set([
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    Buffer.from(text).toString('base64'),
  ]);
}
