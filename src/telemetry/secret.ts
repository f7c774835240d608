/**
 * Secrets are wrapped when they are read, and revealed only when they are sent. A wrapped secret prints as
 * `[secret]` (string, JSON, util.inspect). The log also scrubs its text from every line, for example from a
 * server's message that echoes it.
 */
import { inspect } from 'node:util';
import { remember, type SecretOwner } from './scrub.ts';

declare const brand: unique symbol;

export interface Secret {
  readonly [brand]: 'secret';
}

const texts = new WeakMap<object, string>();

const printed = {
  toString: () => '[secret]',
  toJSON: () => '[secret]',
  [inspect.custom]: () => '[secret]',
};

/** @param owner `others`: a pod author or a registry chose it, and the number of such secrets */
export function secret(text: string, owner: SecretOwner = 'ours'): Secret {
  const holder = Object.freeze(Object.create(printed) as Secret);
  texts.set(holder, text);
  remember(text, owner);
  return holder;
}

/** JSON with secrets in clear text, and maps as lists of pairs. Only for hashing. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key) {
    const each = this[key];
    if (each instanceof Map) return [...each];
    return typeof each === 'object' && each !== null ? (texts.get(each) ?? each) : each;
  });
}

/** The text of a secret. Only for sending it to its owner. */
export function reveal(holder: Secret): string {
  const text = texts.get(holder);
  if (text === undefined) throw new TypeError('not a secret');
  return text;
}
