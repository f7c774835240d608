/**
 * Estimates of what values cost in memory, in bytes, for V8 on 64-bit machines without pointer compression
 * (Node 24). They are measured against the heap by `npm run bench:memory`.
 */

export const pointerBytes = 8;
const objectHeader = 24;
const stringHeader = 16;

/** A number that is stored as an object. */
export const numberBytes = 16;

/** Per entry: three words and half a bucket word, in a table between half full and full. */
export const mapEntryBytes = 48;

/** Texts with a character beyond Latin-1 take twice as much. */
export function textBytes(text: string | undefined): number {
  if (text === undefined) return 0;
  const width = /[\u0100-\uffff]/.test(text) ? 2 : 1;
  return Math.ceil((stringHeader + text.length * width) / pointerBytes) * pointerBytes;
}

/** Bytes of an object with so many fields, without what they point to. */
export function objectBytes(fields: number): number {
  return objectHeader + fields * pointerBytes;
}

/**
 * A copy of a text that stands alone. A text that was cut out of a larger one keeps all of that alive (a
 * digest cut from a 4 MiB manifest), and one that was put together keeps its parts.
 */
export function compact(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}
