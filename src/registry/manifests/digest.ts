/** Digests of the OCI image specification: `sha256:<64 hex>` or `sha512:<128 hex>`, the two that registries may use. */
import { createHash } from 'node:crypto';

const pattern = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;

/** Whether a text is a digest that can be verified. */
export function isDigest(text: string): boolean {
  return pattern.test(text);
}

/**
 * The digest of bytes.
 * @param like a digest of the algorithm to use. Default: sha256
 */
export function digestOf(bytes: Uint8Array, like?: string): string {
  const algorithm = like?.startsWith('sha512:') === true ? 'sha512' : 'sha256';
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}
