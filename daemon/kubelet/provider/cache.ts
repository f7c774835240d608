/**
 * What one provider answered, for as long as it may be used (kubernetes pkg/credentialprovider/plugin/plugin.go
 * `getCachedCredentials`). An entry is expired when now is strictly after its end. Expired ones go when they are
 * looked up, and all of them at most every 15 minutes. Unlike the kubelet's it is bounded: the oldest entries go first.
 */
import type { Credential } from '../../../src/credentials/credential.ts';
import type { Clock } from '../../../src/async/clock.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { cacheKey, globalKey, registryOf } from './cache-key.ts';

export type Auth = ReadonlyMap<string, Credential>;

export interface CredentialCache {
  /** By image, then by its registry, then for all images. */
  get(image: string, serviceAccountKey?: Buffer): Auth | undefined;
  /** @param forMs from now on; a negative time is over already */
  set(key: Buffer, auth: Auth, forMs: number): void;
  /** Entries held, expired ones included. */
  readonly size: number;
}

const purgeIntervalMs = 15 * 60_000;

/** A node has some hundred images; with service accounts each can have entries of its own. */
const defaultMaxEntries = 1000;

/** A large answer has some 4 KiB for one registry; this holds a thousand of them and keeps an agent small. */
const defaultMaxBytes = 4 * 1_048_576;

/** Objects around each key and credential. */
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

export function createCredentialCache(options: CacheOptions): CredentialCache {
  const { clock, maxEntries = defaultMaxEntries, maxBytes = defaultMaxBytes } = options;
  const held = new Map<string, Entry>();
  let bytes = 0;
  let purgedAt = clock.monotonic();

  function drop(key: string): void {
    bytes -= held.get(key)?.bytes ?? 0;
    held.delete(key);
  }

  function purge(now: number): void {
    if (now <= purgedAt + purgeIntervalMs) return;
    purgedAt = now;
    for (const [key, { end }] of held) if (now > end) drop(key);
  }

  return {
    get(image, serviceAccountKey) {
      const now = clock.monotonic();
      purge(now);
      for (const base of [image, registryOf(image), globalKey]) {
        const key = cacheKey(base, serviceAccountKey).toString('latin1');
        const entry = held.get(key);
        if (entry === undefined) continue;
        if (now <= entry.end) return entry.auth;
        drop(key);
      }
      return undefined;
    },
    set(keyBytes, auth, forMs) {
      const key = keyBytes.toString('latin1');
      drop(key);
      const entry = { auth, end: clock.monotonic() + forMs, bytes: sizeOf(key, auth) };
      held.set(key, entry);
      bytes += entry.bytes;
      for (const oldest of held.keys()) {
        if (held.size <= maxEntries && bytes <= maxBytes) break;
        drop(oldest);
      }
    },
    get size() {
      return held.size;
    },
  };
}

function sizeOf(key: string, auth: Auth): number {
  let bytes = overheadBytes + key.length;
  for (const [name, { username, password }] of auth) {
    bytes += overheadBytes + name.length + username.length + reveal(password).length;
  }
  return bytes;
}
