/**
 * Digests: `algorithm:hex` of a content. The rules are those of opencontainers/go-digest, which the kubelet and
 * containerd share: a known algorithm, the length that belongs to it, lower-case hexadecimal.
 */
import { InvalidReference } from './reference-error.ts';

export type DigestAlgorithm = 'sha256' | 'sha384' | 'sha512';

/** Both the kubelet and containerd link exactly these three. */
export const digestAlgorithms: readonly DigestAlgorithm[] = ['sha256', 'sha384', 'sha512'];

const hexLengths: ReadonlyMap<string, number> = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
]);

/** How go-digest writes any digest, known algorithm or not. */
const wellFormed = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/;
const lowerHex = /^[a-f0-9]+$/;

/**
 * Checks a digest.
 * @param text such as `sha256:<64 hex digits>`
 * @param known algorithms that count as registered
 * @throws InvalidReference with go-digest's message texts
 */
export function checkDigest(text: string, known: readonly string[] = digestAlgorithms): void {
  const colon = text.indexOf(':');
  if (colon <= 0 || colon + 1 === text.length) throw new InvalidReference('invalid checksum digest format');
  const algorithm = text.slice(0, colon);
  const length = hexLengths.get(algorithm);
  if (length === undefined || !known.includes(algorithm)) {
    throw new InvalidReference(
      wellFormed.test(text) ? 'unsupported digest algorithm' : 'invalid checksum digest format',
    );
  }
  const hex = text.slice(colon + 1);
  if (hex.length !== length) throw new InvalidReference('invalid checksum digest length');
  if (!lowerHex.test(hex)) throw new InvalidReference('invalid checksum digest format');
}

/** Whether a text is a complete digest of a known algorithm. */
export function isDigest(text: string): boolean {
  try {
    checkDigest(text);
    return true;
  } catch (error) {
    if (error instanceof InvalidReference) return false;
    throw error;
  }
}
