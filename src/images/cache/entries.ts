/**
 * The entries of the cache: by image and scope, bounded by bytes. Facts of a tag also answer for their digest
 * in the same repository. Platforms, media types and endpoints, which thousands of images have in common, are
 * kept once.
 */
import type { Clock } from '../../async/clock.ts';
import type { FactsError } from '../facts/facts.ts';
import type { Reference } from '../references/reference.ts';
import { nextFailure, type Entry, type Known } from './entry.ts';
import { FairLru } from './fair-lru.ts';
import { scopedKey, sharedScope, type Scope } from './scope.ts';
import { compact, mapEntryBytes, numberBytes, objectBytes, pointerBytes, textBytes } from './size.ts';

/** Where an entry is, and the namespace for which it is looked up. */
export interface Place {
  /** Of the image, without scope. */
  readonly key: string;
  readonly scope: Scope;
  readonly owner: string;
}

const unknown = { known: undefined, failure: undefined, driftedAt: Number.NEGATIVE_INFINITY } as const;

export class Entries {
  readonly #clock: Pick<Clock, 'monotonic' | 'random'>;
  readonly #lru: FairLru<Entry>;
  readonly #onEvict: () => void;
  /** The shared entry of a tag, by the digest that it names. */
  readonly #byDigest = new Map<string, Entry>();
  readonly #common = new CommonValues();

  /** @param onEvict called for each entry that leaves for want of room */
  constructor(maxBytes: number, clock: Pick<Clock, 'monotonic' | 'random'>, onEvict: () => void) {
    this.#clock = clock;
    this.#lru = new FairLru(maxBytes);
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#lru.size;
  }

  get bytes(): number {
    return this.#lru.bytes;
  }

  /** @param key of the image, without scope */
  find(key: string, { repository, digest }: Reference, scope: Scope): Entry | undefined {
    const entry = this.#lru.get(scopedKey(key, scope));
    if (entry?.known || digest === undefined || scope !== sharedScope) return entry;
    const tagged = this.#byDigest.get(digest);
    return tagged?.key.startsWith(`${repository}:`) ? tagged : entry;
  }

  touch(entry: Entry): void {
    this.#lru.touch(entry);
  }

  /** Keeps facts, unless newer ones of the same image and scope are known. @returns whether it keeps them */
  know(place: Place, known: Known): boolean {
    const { known: before, driftedAt } = this.#at(place);
    if (known.at < Math.max(driftedAt, before?.at ?? driftedAt)) return false;
    this.#change(place, { known: this.#common.share(known), failure: undefined });
    return true;
  }

  /** Remembers a failed lookup. Only `not-found` ends what is known. */
  fail(place: Place, error: FactsError): void {
    const failure = nextFailure(this.#at(place).failure, error, this.#clock);
    this.#change(place, { failure, ...(error.code === 'not-found' && { known: undefined }) });
  }

  /** A tag names this digest now: other facts of it are forgotten, in all scopes. */
  forgetOthers(key: string, digest: string): void {
    const driftedAt = this.#clock.monotonic();
    const isOther = (entry: Entry): boolean =>
      (entry.key === key || entry.key.startsWith(`${key} `)) && entry.known?.digest !== digest;
    for (const entry of [...this.#lru.values()].filter(isOther))
      this.#replace(entry, { ...entry, ...unknown, driftedAt });
  }

  /** Shared entries with facts, the most recently confirmed first. */
  shared(): readonly (Entry & { readonly known: Known })[] {
    const isShared = (entry: Entry): entry is Entry & { known: Known } =>
      entry.known !== undefined && !entry.key.includes(' ');
    return [...this.#lru.values()].filter(isShared).sort((a, b) => b.known.at - a.known.at);
  }

  #at({ key, scope, owner }: Place): Entry {
    const scoped = scopedKey(key, scope);
    return this.#lru.get(scoped) ?? { key: compact(scoped), owner, bytes: 0, ...unknown };
  }

  #change(place: Place, change: Partial<Entry>): void {
    const before = this.#at(place);
    this.#replace(before, { ...before, ...change });
  }

  #replace(before: Entry, { key, owner, known, failure, driftedAt }: Entry): void {
    this.#dropDigest(before);
    const bytes = bytesOf({ key, known, failure }) + (known ? this.#common.bytesOf(known) : 0);
    const entry: Entry = { key, owner, bytes, known, failure, driftedAt, newer: undefined, older: undefined };
    if (known && !key.includes(' ')) this.#byDigest.set(known.digest, entry);
    for (const evicted of this.#lru.put(entry)) {
      this.#dropDigest(evicted);
      this.#onEvict();
    }
  }

  #dropDigest(entry: Entry): void {
    const { digest } = entry.known ?? {};
    if (digest !== undefined && this.#byDigest.get(digest) === entry) this.#byDigest.delete(digest);
  }
}

/** Without values that are kept once. */
function bytesOf({ key, known, failure }: Pick<Entry, 'key' | 'known' | 'failure'>): number {
  const ofError = (error: FactsError | undefined): number =>
    error === undefined ? 0 : objectBytes(3) + textBytes(error.message) + textBytes(error.hint);
  let bytes = objectBytes(8) + textBytes(key) + mapEntryBytes;
  if (failure) bytes += objectBytes(3) + numberBytes + ofError(failure.error);
  if (known)
    bytes +=
      objectBytes(8) +
      numberBytes +
      textBytes(known.confirmedAt) +
      textBytes(known.digest) +
      mapEntryBytes +
      ofError(known.error);
  return bytes;
}

/** Clusters have some dozens of different ones. Any further ones are kept, and counted, for each image. */
const maxCommon = 2048;

type Value = Known['platforms'][number] | string;

/** The first values that come are kept for as long as the process runs. */
class CommonValues {
  readonly #byText = new Map<string, Value>();

  /** A copy of facts with common values; it keeps no larger document alive. */
  share({ digest, mediaType, endpoint, platforms, error, ...rest }: Known): Known {
    return {
      ...rest,
      digest: compact(digest),
      mediaType: mediaType === undefined ? undefined : this.#share(mediaType),
      endpoint: this.#share(endpoint),
      platforms: platforms.map((platform) => this.#share(platform)),
      error: error && { code: error.code, message: compact(error.message) },
    };
  }

  bytesOf({ platforms, mediaType = '', endpoint }: Known): number {
    const sizes = [mediaType, endpoint, ...platforms].map((value) => {
      const text = JSON.stringify(value);
      return pointerBytes + (this.#byText.get(text) === value ? 0 : objectBytes(7) + textBytes(text));
    });
    return sizes.reduce((sum, bytes) => sum + bytes, objectBytes(2));
  }

  #share<Shared extends Value>(value: Shared): Shared {
    const text = JSON.stringify(value);
    const known = this.#byText.get(text);
    if (known !== undefined) return known as Shared;
    const copy = JSON.parse(text) as Shared;
    if (this.#byText.size < maxCommon) this.#byText.set(text, copy);
    return copy;
  }
}
