/**
 * Short stand-ins for longer texts, to recognize them again (FNV-1a, 32 bit). No guard against forgery: where one is
 * compared, a false match must do no harm.
 */

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

/** Hashes texts in order; where one ends and the next begins counts. */
export function hashText(texts: readonly string[]): string {
  let hash = offsetBasis;
  for (const text of texts) {
    for (let index = 0; index < text.length; index += 1)
      hash = Math.imul(hash ^ text.charCodeAt(index), prime);
    // Beyond any code unit, so that it cannot be part of a text.
    hash = Math.imul(hash ^ 0x1_0000, prime);
  }
  return (hash >>> 0).toString(36);
}
