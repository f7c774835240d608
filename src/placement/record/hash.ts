/**
 * Short hashes that identify longer texts (FNV-1a, 32 bit). They do not resist forgery: compare them only if
 * a false match does no harm.
 */
import type { ImageVerdict } from '../decision.ts';

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

/** Hashes texts in order. The boundaries between texts count. */
export function hashText(texts: readonly string[]): string {
  let hash = offsetBasis;
  for (const text of texts) {
    for (let index = 0; index < text.length; index += 1)
      hash = Math.imul(hash ^ text.charCodeAt(index), prime);
    // Above every code unit, so that it cannot occur in a text.
    hash = Math.imul(hash ^ 0x1_0000, prime);
  }
  return (hash >>> 0).toString(36);
}

/** Identifies the images of a pod. */
export function imagesKeyOf(os: string, images: readonly ImageVerdict[]): string {
  return hashText([os, ...images.map(({ image }) => image)]);
}
