/**
 * Keys of the cache, byte for byte as in kubernetes pkg/credentialprovider/plugin/plugin.go (`generateCacheKey`,
 * `generateServiceAccountCacheKey`, `generateSingleFlightKey`): texts with a 16-bit length prefix, so that different
 * lists of texts have different keys. Keys contain the hash of a token, not the token.
 */
import { createHash } from 'node:crypto';
import { compareBytes } from '../../../src/credentials/keyring/keyring.ts';
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';

/** For all images. An image reference cannot contain `<` and `>`, so it cannot have this key. */
export const globalKey = '<global>';

export interface ServiceAccountIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Annotations in the plugin's request. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** @param base an image, a registry, or `globalKey` */
export function cacheKey(base: string, serviceAccountKey: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([prefixed(base), prefixed(serviceAccountKey)]);
}

/**
 * @param cacheType with `Token`, each token has its own entries
 * @param hash `tokenHash` of the token
 */
export function serviceAccountKey(account: ServiceAccountIdentity, cacheType: string, hash: string): Buffer {
  const parts = [account.namespace, account.name, account.uid].map(prefixed);
  const token = cacheType === 'Token' ? [prefixed('token'), prefixed(hash)] : [];
  return Buffer.concat([...parts, annotationsKey(account.annotations), ...token]);
}

/** Concurrent runs with the same key are one run. */
export function singleFlightKey(
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

/** The registry of an image, with its port: the part before the first slash. */
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
  // Go's builder refuses longer parts too.
  if (bytes.length > 0xffff) throw new RangeError('a part of a cache key is longer than 65535 bytes');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
