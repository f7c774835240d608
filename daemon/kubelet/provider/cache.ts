/**
 * The answers of one provider (kubernetes pkg/credentialprovider/plugin/plugin.go `getCachedCredentials`). An
 * entry expires strictly after its end. Unlike the kubelet's, this cache is bounded.
 */
import { BoundedMap } from '../../../src/async/bounded-map.ts';
import type { Clock } from '../../../src/async/clock.ts';
import type { Credential } from '../../../src/credentials/credential.ts';
import { reveal } from '../../../src/telemetry/secret.ts';

export type Auth = ReadonlyMap<string, Credential>;

/** A few hundred images per node, with entries of several service accounts; up to 4 KiB each. */
const maxEntries = 1000;
const maxBytes = 4 * 1_048_576;

/** JavaScript objects of each key and credential. */
const overheadBytes = 200;

interface Entry {
  readonly auth: Auth;
  readonly end: number;
  readonly bytes: number;
}

export class CredentialCache {
  readonly #clock: Clock;
  readonly #entries = new BoundedMap<string, Entry>(maxEntries, ({ bytes }) => (this.#bytes -= bytes));
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
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
      if (this.#bytes <= maxBytes) break;
      this.#delete(oldest);
    }
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

/** @param base an image, a registry, or `globalKey` @param account `cacheKey` of the grant */
export function cacheKey(base: string, account = ''): string {
  return JSON.stringify([base, account]);
}

/** The registry of an image, with its port: the part before the first slash. */
export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? '';
}
