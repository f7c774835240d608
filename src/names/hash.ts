/** Hashes: a strong one of values, and a short one of texts. */
import { createHash } from 'node:crypto';

/** SHA-256 of a JSON value: equal for equal values. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url');
}

/** FNV-1a, 32 bit, over UTF-16 units. It does not resist forgery. @param start the hash of what comes before */
export function fnv1a(text: string, start = 0x811c9dc5): number {
  let hash = start;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}

/** Identifies texts in their order. Compare two only if a false match does no harm. */
export function hashText(texts: readonly string[]): string {
  // The boundary between texts counts: it is above every code unit, so it cannot occur in a text.
  const hash = texts.reduce((state, text) => Math.imul(fnv1a(text, state) ^ 0x1_0000, 0x01000193), fnv1a(''));
  return (hash >>> 0).toString(36);
}
