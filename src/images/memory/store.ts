/**
 * The store of good facts: by image and scope, bounded by bytes, the least recently used leave first. Shared facts that were
 * learned by tag are found by their digest as well, in the same repository.
 */
import type { ImageFacts, FactsError } from '../facts/facts.ts';
import { scopedKey, sharedScope, type Scope } from './scope.ts';
import {
  createLru,
  compact,
  mapEntryBytes,
  numberBytes,
  objectBytes,
  textBytes,
  type Linked,
} from './lru.ts';
import type { Reference } from '../references/reference.ts';
import type { CredentialSourceName } from '../../credentials/credential.ts';
import type { Platform } from '../platforms/platform.ts';

export interface FactsStore {
  /**
   * The facts of an image under exactly this scope.
   * @param key of the image, without scope
   */
  find(key: string, reference: Reference, scope: Scope): Entry | undefined;
  /** The same, without the digests of tags. */
  get(key: string, scope: Scope): Entry | undefined;
  /** Keeps facts that have a digest; they replace facts with the same key and scope. */
  put(key: string, scope: Scope, facts: ImageFacts & { readonly digest: string }, confirmedAt: number): void;
  touch(entry: Entry): void;
  remove(entry: Entry): void;
  /** What may be told to anyone, the most recently used first. */
  shared(): Entry[];
  readonly size: number;
  readonly bytes: number;
}

/**
 * Makes an empty store.
 * @param maxBytes what it may hold, by the estimates of `size.ts`
 * @param onEvict told of each entry that leaves for want of room
 */
export function createFactsStore(maxBytes: number, onEvict: () => void = () => {}): FactsStore {
  const details = createInterner(detailsBytes);
  const byDigest = new Map<string, Entry>();
  const entries = createLru<Entry>((entry) => {
    details.release(entry.details);
    if (byDigest.get(entry.digest) === entry) byDigest.delete(entry.digest);
  });

  function sameDigest({ repository, digest }: Reference): Entry | undefined {
    const entry = digest === undefined ? undefined : byDigest.get(digest);
    return entry && repositoryOf(entry) === repository ? entry : undefined;
  }

  return {
    find: (key, reference, scope) =>
      entries.get(scopedKey(key, scope)) ?? (scope === sharedScope ? sameDigest(reference) : undefined),
    get: (key, scope) => entries.get(scopedKey(key, scope)),
    put: (key, scope, facts, confirmedAt) => {
      const made = makeEntry(
        scopedKey(key, scope),
        scope,
        facts.digest,
        details.take(compact(detailsText(facts)), () => detailsOf(facts)),
        confirmedAt,
      );
      entries.put(made);
      if (scope === sharedScope) byDigest.set(made.digest, made);
      for (;;) {
        const oldest = entries.oldest();
        if (!oldest || entries.bytes + details.bytes <= maxBytes) return;
        entries.remove(oldest);
        onEvict();
      }
    },
    touch: (entry) => {
      entries.touch(entry);
    },
    remove: (entry) => {
      entries.remove(entry);
    },
    shared: () =>
      entries
        .entries()
        .filter(({ scope }) => scope === sharedScope)
        .reverse(),
    get size() {
      return entries.size;
    },
    get bytes() {
      return entries.bytes + details.bytes;
    },
  };
}

/** The repository in the key of a shared entry. */
function repositoryOf({ key }: Entry): string {
  const at = key.indexOf('@');
  return at >= 0 ? key.slice(0, at) : key.slice(0, key.lastIndexOf(':'));
}

export interface Details {
  readonly mediaType: string | undefined;
  readonly platforms: readonly Platform[];
  readonly credentialSource: CredentialSourceName;
  readonly endpoint: string;
  /** Only `not-an-image`, which is knowledge rather than a failure. */
  readonly error: FactsError | undefined;
}

export interface Entry extends Linked<Entry> {
  readonly scope: Scope;
  readonly digest: string;
  readonly details: Interned<Details>;
  /** Monotonic time at which a registry confirmed it; before the process started for what was restored. */
  readonly confirmedAt: number;
  /** Monotonic time before which it is not revalidated again. */
  pausedUntil: number;
}

/** The part of facts that is interned. */
export function detailsOf(facts: ImageFacts): Details {
  return {
    mediaType: facts.mediaType === undefined ? undefined : compact(facts.mediaType),
    platforms: facts.platforms.map(({ os, architecture, variant }) => ({
      os: compact(os),
      architecture: compact(architecture),
      ...(variant !== undefined && { variant: compact(variant) }),
    })),
    credentialSource: facts.credentialSource,
    endpoint: compact(facts.endpoint),
    error: facts.error && { code: facts.error.code, message: compact(facts.error.message) },
  };
}

/** Stands in no platform, media type or host. */
const separator = '\0';

/** A text that is equal for facts with equal details only. */
export function detailsText(facts: ImageFacts): string {
  const { mediaType = '', platforms, credentialSource, endpoint, error } = facts;
  let text = mediaType + separator + credentialSource + separator + endpoint;
  for (const { os, architecture, variant = '' } of platforms) {
    text += separator + os + separator + architecture + separator + variant;
  }
  return error ? text + separator + error.code + separator + JSON.stringify(error.message) : text;
}

/** What details cost in memory. */
export function detailsBytes(details: Details): number {
  let bytes = objectBytes(5) + textBytes(details.mediaType) + textBytes(details.endpoint);
  if (details.error) bytes += objectBytes(2) + textBytes(details.error.message);
  for (const { os, architecture, variant } of details.platforms) {
    bytes += objectBytes(4) + textBytes(os) + textBytes(architecture) + textBytes(variant);
  }
  return bytes;
}

/**
 * Makes an entry.
 * @param key under which it is found, with its scope
 */
export function makeEntry(
  key: string,
  scope: Scope,
  digest: string,
  details: Interned<Details>,
  confirmedAt: number,
): Entry {
  const indexes = scope === sharedScope ? 2 : 1;
  return {
    key: compact(key),
    scope,
    digest: compact(digest),
    details,
    confirmedAt,
    pausedUntil: Number.NEGATIVE_INFINITY,
    bytes:
      objectBytes(10) +
      textBytes(key) +
      textBytes(digest) +
      textBytes(scope) +
      2 * numberBytes +
      indexes * mapEntryBytes,
    listed: false,
    newer: undefined,
    older: undefined,
  };
}

/** A use of a kept value. */
export interface Interned<Value> {
  readonly value: Value;
}

export interface Interner<Value> {
  /**
   * Begins a use of the value with this text.
   * @param text equal for equal values and for no others
   * @param make called where no such value is kept
   */
  take(text: string, make: () => Value): Interned<Value>;
  /** Ends a use that `take` began. */
  release(interned: Interned<Value>): void;
  /** Number of distinct values. */
  readonly size: number;
  /** Bytes of all kept values. */
  readonly bytes: number;
}

interface Kept<Value> extends Interned<Value> {
  readonly text: string;
  readonly bytes: number;
  uses: number;
}

/**
 * Makes an empty interner.
 * @param bytesOf what a value costs in memory
 */
export function createInterner<Value>(bytesOf: (value: Value) => number): Interner<Value> {
  const byText = new Map<string, Kept<Value>>();
  let bytes = 0;

  return {
    take: (text, make) => {
      const kept = byText.get(text);
      if (kept) {
        kept.uses += 1;
        return kept;
      }
      const value = make();
      const made = { value, text, bytes: bytesOf(value) + ownBytes(text), uses: 1 };
      byText.set(text, made);
      bytes += made.bytes;
      return made;
    },
    release: (interned) => {
      const kept = interned as Kept<Value>;
      kept.uses -= 1;
      if (kept.uses > 0) return;
      byText.delete(kept.text);
      bytes -= kept.bytes;
    },
    get size() {
      return byText.size;
    },
    get bytes() {
      return bytes;
    },
  };
}

function ownBytes(text: string): number {
  return textBytes(text) + objectBytes(4) + mapEntryBytes;
}
