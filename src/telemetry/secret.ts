/**
 * Secrets are wrapped where they are born and opened only where they are sent. A wrapped secret prints as
 * `[secret]` whatever prints it (string, JSON, util.inspect), and the log scrubs its text from every line, so a
 * message that quotes a server's echo of it stays clean too.
 */
import { inspect } from 'node:util';
import { remember } from './scrub.ts';

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
