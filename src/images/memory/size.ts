/**
 * Estimates of what values cost in memory, in bytes, for V8 on 64-bit machines without pointer compression (Node 24). They are
 * measured against the heap by `npm run bench:memory`.
 */

const pointer = 8;
const objectHeader = 24;
const stringHeader = 16;
const boxedNumber = 16;

/** An insertion-ordered hash table spends three words per entry, half a word per bucket, and is between half full and full. */
export const mapEntryBytes = 48;

/**
 * Bytes of a text. Texts with a character beyond Latin-1 take twice as much; nothing that is remembered is expected to have
 * one, so only error messages are looked at for it.
 */
export function textBytes(text: string | undefined): number {
  return text === undefined ? 0 : roundUp(stringHeader + text.length * (isLatin1(text) ? 1 : 2));
}

/** Bytes of an object with so many fields, without what they point to. */
export function objectBytes(fields: number): number {
  return objectHeader + fields * pointer;
}

export const numberBytes = boxedNumber;

function isLatin1(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0xff) return false;
  return true;
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / pointer) * pointer;
}

/**
 * A copy of a text that stands alone. A text that was cut out of a larger one keeps all of that alive (a digest cut from a
 * 4 MiB manifest), and one that was put together keeps its parts.
 */
export function compact(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}
