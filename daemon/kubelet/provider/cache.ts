/**
 * The answers of one provider (kubernetes pkg/credentialprovider/plugin/plugin.go `getCachedCredentials`). An
 * entry expires strictly after its end. Unlike the kubelet's, this cache is bounded.
 */
import { createHash } from 'node:crypto';
import { BoundedMap } from '../../../src/async/bounded-map.ts';
import type { Clock } from '../../../src/async/clock.ts';
import type { Credential } from '../../../src/credentials/credential.ts';
import { compareBytes } from '../../../src/names/values.ts';
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';

export type Auth = ReadonlyMap<string, Credential>;

/** A few hundred images per node, with entries of several service accounts; up to 4 KiB each. */
const bounds = { maxEntries: 1000, maxBytes: 4 * 1_048_576 };

/** JavaScript objects of each key and credential. */
const overheadBytes = 200;

interface Entry {
  readonly auth: Auth;
  readonly end: number;
  readonly bytes: number;
}

export class CredentialCache {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #entries: BoundedMap<string, Entry>;
  #bytes = 0;

  constructor(clock: Clock, { maxEntries, maxBytes }: typeof bounds = bounds) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
    this.#entries = new BoundedMap(maxEntries, ({ bytes }) => (this.#bytes -= bytes));
  }

  /** The entry of the image, of its registry, or of all images, in this order. Deletes expired entries. */
  get(image: string, account?: string): Auth | undefined {
    const now = this.#clock.monotonic();
    for (const [key, { end }] of this.#entries) if (now > end) this.#delete(key);
    const keys = [image, registryOf(image), globalKey].map((base) => cacheKey(base, account));
    const found = keys.find((key) => this.#entries.has(key));
    return found === undefined ? undefined : this.#entries.get(found)?.auth;
  }

  /** @param forMs from now on; an entry with a negative duration is expired at once */
  set(key: string, auth: Auth, forMs: number): void {
    this.#delete(key);
    const entry = { auth, end: this.#clock.monotonic() + forMs, bytes: sizeOf(key, auth) };
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#delete(oldest);
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  #delete(key: string): void {
    this.#bytes -= this.#entries.peek(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }
}

function sizeOf(key: string, auth: Auth): number {
  let bytes = overheadBytes + key.length;
  for (const [name, { username, password }] of auth) {
    bytes += overheadBytes + name.length + username.length + reveal(password).length;
  }
  return bytes;
}

/** For all images. An image reference cannot contain `<` and `>`, so it cannot have this key. */
export const globalKey = '<global>';

export interface ServiceAccountIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Annotations in the plugin's request. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** @param base an image, a registry, or `globalKey` @param account `serviceAccountKey` of the pod */
export function cacheKey(base: string, account = ''): string {
  return JSON.stringify([base, account]);
}

/** @param cacheType with `Token`, each token has its own entries @param hash `tokenHash` of the token */
export function serviceAccountKey(account: ServiceAccountIdentity, cacheType: string, hash: string): string {
  const { namespace, name, uid, annotations } = account;
  return JSON.stringify([namespace, name, uid, sorted(annotations), cacheType === 'Token' ? hash : '']);
}

export function singleFlightKey(
  image: string,
  hash: string,
  annotations: Readonly<Record<string, string>>,
): string {
  return JSON.stringify([image, hash, sorted(annotations)]);
}

function sorted(annotations: Readonly<Record<string, string>>) {
  return Object.entries(annotations).sort(([a], [b]) => compareBytes(a, b));
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
