/**
 * The answers of one provider (kubernetes pkg/credentialprovider/plugin/plugin.go `getCachedCredentials`). An entry expires strictly
 * after its end. Expired entries are deleted by lookups, and all of them every 15 minutes at most. Unlike the kubelet's, this cache
 * is bounded: the oldest entries are deleted first.
 */
import type { Credential } from '../../../src/credentials/credential.ts';
import type { Clock } from '../../../src/async/clock.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { cacheKey, globalKey, registryOf } from './cache-key.ts';

export type Auth = ReadonlyMap<string, Credential>;

const purgeIntervalMs = 15 * 60_000;

/** A node has some hundred images; with service accounts, each may have several entries. */
const defaultMaxEntries = 1000;

/** Room for a thousand large answers of 4 KiB. */
const defaultMaxBytes = 4 * 1_048_576;

/** JavaScript objects of each key and credential. */
const overheadBytes = 200;

export interface CacheOptions {
  readonly clock: Clock;
  readonly maxEntries?: number;
  readonly maxBytes?: number;
}

interface Entry {
  readonly auth: Auth;
  readonly end: number;
  readonly bytes: number;
}

export class CredentialCache {
  readonly #clock: Clock;
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #purgedAt: number;

  constructor({ clock, maxEntries = defaultMaxEntries, maxBytes = defaultMaxBytes }: CacheOptions) {
    this.#clock = clock;
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
    this.#purgedAt = clock.monotonic();
  }

  /** The entry of the image, of its registry, or of all images, in this order. */
  get(image: string, serviceAccountKey?: Buffer): Auth | undefined {
    const now = this.#clock.monotonic();
    this.#purge(now);
    for (const base of [image, registryOf(image), globalKey]) {
      const key = cacheKey(base, serviceAccountKey).toString('latin1');
      const entry = this.#entries.get(key);
      if (entry === undefined) continue;
      if (now <= entry.end) return entry.auth;
      this.#delete(key);
    }
    return undefined;
  }

  /** @param forMs from now on; an entry with a negative duration is expired at once */
  set(keyBytes: Buffer, auth: Auth, forMs: number): void {
    const key = keyBytes.toString('latin1');
    this.#delete(key);
    const entry = { auth, end: this.#clock.monotonic() + forMs, bytes: sizeOf(key, auth) };
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#bytes <= this.#maxBytes) break;
      this.#delete(oldest);
    }
  }

  /** Entries, expired ones included. */
  get size(): number {
    return this.#entries.size;
  }

  #delete(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }

  #purge(now: number): void {
    if (now <= this.#purgedAt + purgeIntervalMs) return;
    this.#purgedAt = now;
    for (const [key, { end }] of this.#entries) if (now > end) this.#delete(key);
  }
}

function sizeOf(key: string, auth: Auth): number {
  let bytes = overheadBytes + key.length;
  for (const [name, { username, password }] of auth) {
    bytes += overheadBytes + name.length + username.length + reveal(password).length;
  }
  return bytes;
}
