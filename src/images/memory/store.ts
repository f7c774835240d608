/**
 * The store of good facts: by image and scope, bounded by bytes, the least recently used leave first. Shared facts that were
 * learned by tag are found by their digest as well, in the same repository.
 *
 * Thousands of images have the same platforms at the same endpoint: such details are kept once, and counted once, for as long
 * as an entry uses them. The rest of an entry is as small as it can be. Newer facts make a new entry.
 */
import type { CredentialSourceName } from '../../credentials/credential.ts';
import type { FactsError, ImageFacts } from '../facts/facts.ts';
import type { Platform } from '../platforms/platform.ts';
import type { Reference } from '../references/reference.ts';
import { Lru, unlinked, type Linked } from './lru.ts';
import { scopedKey, sharedScope, type Scope } from './scope.ts';
import { compact, mapEntryBytes, numberBytes, objectBytes, textBytes } from './size.ts';

interface Details {
  readonly mediaType: string | undefined;
  readonly platforms: readonly Platform[];
  readonly credentialSource: CredentialSourceName;
  readonly endpoint: string;
  /** Only `not-an-image`, which is knowledge rather than a failure. */
  readonly error: FactsError | undefined;
}

interface SharedDetails {
  readonly value: Details;
  readonly text: string;
  readonly bytes: number;
  uses: number;
}

export interface Entry extends Linked<Entry> {
  readonly scope: Scope;
  readonly digest: string;
  readonly details: SharedDetails;
  /** Monotonic time at which a registry confirmed it; before the process started for what was restored. */
  readonly confirmedAt: number;
  /** Monotonic time before which it is not revalidated again. */
  pausedUntil: number;
}

export class FactsStore {
  readonly #maxBytes: number;
  readonly #onEvict: () => void;
  readonly #details = new Map<string, SharedDetails>();
  readonly #byDigest = new Map<string, Entry>();
  readonly #entries = new Lru<Entry>((entry) => this.#removed(entry));
  #detailsBytes = 0;

  /** @param onEvict called for each entry that leaves for want of room */
  constructor(maxBytes: number, onEvict: () => void = () => {}) {
    this.#maxBytes = maxBytes;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#entries.bytes + this.#detailsBytes;
  }

  /** The facts of an image under exactly this scope. @param key of the image, without scope */
  find(key: string, reference: Reference, scope: Scope): Entry | undefined {
    return this.get(key, scope) ?? (scope === sharedScope ? this.#sameDigest(reference) : undefined);
  }

  /** The same, without the digests of tags. */
  get(key: string, scope: Scope): Entry | undefined {
    return this.#entries.get(scopedKey(key, scope));
  }

  /** Keeps facts that have a digest; they replace facts with the same key and scope. */
  put(key: string, scope: Scope, facts: ImageFacts & { readonly digest: string }, confirmedAt: number): void {
    const details = this.#takeDetails(facts);
    const entry = createEntry(scopedKey(key, scope), scope, facts.digest, details, confirmedAt);
    this.#entries.put(entry);
    if (scope === sharedScope) this.#byDigest.set(entry.digest, entry);
    while (this.#entries.oldest && this.bytes > this.#maxBytes) {
      this.#entries.remove(this.#entries.oldest);
      this.#onEvict();
    }
  }

  touch(entry: Entry): void {
    this.#entries.touch(entry);
  }

  remove(entry: Entry): void {
    this.#entries.remove(entry);
  }

  /** Shared facts, the most recently used first. */
  shared(): Entry[] {
    return [...this.#entries.newestFirst()].filter(({ scope }) => scope === sharedScope);
  }

  #sameDigest({ repository, digest }: Reference): Entry | undefined {
    const entry = digest === undefined ? undefined : this.#byDigest.get(digest);
    return entry && repositoryOf(entry) === repository ? entry : undefined;
  }

  #removed(entry: Entry): void {
    const { details, digest } = entry;
    if (this.#byDigest.get(digest) === entry) this.#byDigest.delete(digest);
    details.uses -= 1;
    if (details.uses > 0) return;
    this.#details.delete(details.text);
    this.#detailsBytes -= details.bytes;
  }

  #takeDetails(facts: ImageFacts): SharedDetails {
    const text = compact(detailsText(facts));
    let details = this.#details.get(text);
    if (!details) {
      const value = detailsOf(facts);
      details = { value, text, bytes: detailsBytes(value, text), uses: 0 };
      this.#details.set(text, details);
      this.#detailsBytes += details.bytes;
    }
    details.uses += 1;
    return details;
  }
}

/** The repository in the key of a shared entry. */
function repositoryOf({ key }: Entry): string {
  const at = key.indexOf('@');
  return at >= 0 ? key.slice(0, at) : key.slice(0, key.lastIndexOf(':'));
}

function detailsOf(facts: ImageFacts): Details {
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

/** No platform, media type or host has it. */
const separator = '\0';

/** A text that is equal for facts with equal details only. */
function detailsText(facts: ImageFacts): string {
  const { mediaType = '', platforms, credentialSource, endpoint, error } = facts;
  let text = mediaType + separator + credentialSource + separator + endpoint;
  for (const { os, architecture, variant = '' } of platforms) {
    text += separator + os + separator + architecture + separator + variant;
  }
  return error ? text + separator + error.code + separator + JSON.stringify(error.message) : text;
}

function detailsBytes({ mediaType, endpoint, error, platforms }: Details, text: string): number {
  let bytes = textBytes(text) + objectBytes(4) + mapEntryBytes;
  bytes += objectBytes(5) + textBytes(mediaType) + textBytes(endpoint);
  if (error) bytes += objectBytes(2) + textBytes(error.message);
  for (const { os, architecture, variant } of platforms) {
    bytes += objectBytes(4) + textBytes(os) + textBytes(architecture) + textBytes(variant);
  }
  return bytes;
}

function createEntry(
  key: string,
  scope: Scope,
  digest: string,
  details: SharedDetails,
  confirmedAt: number,
): Entry {
  const texts = textBytes(key) + textBytes(digest) + textBytes(scope);
  const indexes = scope === sharedScope ? 2 : 1;
  return {
    key: compact(key),
    scope,
    digest: compact(digest),
    details,
    confirmedAt,
    pausedUntil: Number.NEGATIVE_INFINITY,
    bytes: objectBytes(10) + texts + 2 * numberBytes + indexes * mapEntryBytes,
    ...unlinked,
  };
}
