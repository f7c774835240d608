/**
 * Keys of the cache, byte for byte as in kubernetes pkg/credentialprovider/plugin/plugin.go (`generateCacheKey`,
 * `generateServiceAccountCacheKey`, `generateSingleFlightKey`): texts with a 16-bit length in front, so that no two
 * different lists of texts give the same key. A token is in a key as its hash only.
 */
import { createHash } from 'node:crypto';
import { compareBytes } from '../../../src/credentials/keyring/keyring.ts';
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';

/** Stands for all images. `<` and `>` cannot be in an image, so that nobody can ask for it by name. */
export const globalKey = '<global>';

export interface ServiceAccountIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Those that the plugin is given. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** @param base an image, a registry, or `globalKey` */
export function cacheKey(base: string, serviceAccountKey: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([prefixed(base), prefixed(serviceAccountKey)]);
}

/**
 * @param cacheType with `Token`, each token has entries of its own
 * @param hash of the token, as `tokenHash` gives it
 */
export function serviceAccountKey(account: ServiceAccountIdentity, cacheType: string, hash: string): Buffer {
  const parts = [account.namespace, account.name, account.uid].map(prefixed);
  const token = cacheType === 'Token' ? [prefixed('token'), prefixed(hash)] : [];
  return Buffer.concat([...parts, annotationsKey(account.annotations), ...token]);
}

/** What must not run twice at once in the name of a service account. */
export function flightKey(
  image: string,
  hash: string,
  annotations: Readonly<Record<string, string>>,
): Buffer {
  return Buffer.concat([prefixed(image), prefixed(hash), annotationsKey(annotations)]);
}

/** Empty for an empty token. */
export function tokenHash(token: Secret): string {
  const text = reveal(token);
  return text === '' ? '' : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** The registry of an image: what stands before the first slash, its port included. */
export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? '';
}

function annotationsKey(annotations: Readonly<Record<string, string>>): Buffer {
  const sorted = Object.entries(annotations).sort(([a], [b]) => compareBytes(a, b));
  const count = Buffer.alloc(4);
  count.writeUInt32BE(sorted.length);
  return Buffer.concat([count, ...sorted.flat().map(prefixed)]);
}

function prefixed(content: string | Buffer): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  // Go's builder refuses longer ones too.
  if (bytes.length > 0xffff) throw new RangeError('a part of a cache key is longer than 65535 bytes');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
