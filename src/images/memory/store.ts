/**
 * The store of good facts: by image and scope, bounded by bytes. Shared facts that were learned by tag are
 * found by their digest as well, in the same repository. Newer facts make a new entry.
 *
 * A scan, for example of many images that are used once, must not flush the facts of others:
 * - New entries are on probation and leave first. Entries that are used again later are protected, in most of
 *   the memory (a segmented LRU). The least recently used leave first.
 * - A registry host that has its share of a full memory makes room among its own entries.
 */
import type { ImageFacts } from '../facts/facts.ts';
import type { Reference } from '../references/reference.ts';
import { SharedDetailsTable, type HostShare, type SharedDetails } from './details.ts';
import { Lru, unlinked, type Linked } from './lru.ts';
import { scopedKey, sharedScope, type Scope } from './scope.ts';
import { compact, mapEntryBytes, numberBytes, objectBytes, textBytes } from './size.ts';

export interface Entry extends Linked<Entry> {
  readonly scope: Scope;
  readonly digest: string;
  readonly details: SharedDetails;
  readonly share: HostShare;
  isProtected: boolean;
  /** Monotonic time at which a registry confirmed it; before the process started for what was restored. */
  readonly confirmedAt: number;
  /** Monotonic time before which it is not revalidated again. */
  pausedUntil: number;
}

/** Webhook, controller and agents use a new image several times within seconds; that is one use. */
const laterMs = 60_000;

/** The rest is for new entries. */
const protectedShare = 0.8;

/** Limit of one registry host. Most clusters use one host, which may exceed it while memory is not full. */
const maxHostShare = 0.5;

/** A host at its share frees this much at once: finding its entries among others takes time. */
const roomAtOnce = 0.01;

export class FactsStore {
  readonly #maxBytes: number;
  readonly #onEvict: () => void;
  readonly #details = new SharedDetailsTable();
  readonly #shares = new Map<string, HostShare>();
  readonly #byDigest = new Map<string, Entry>();
  readonly #probation = new Lru<Entry>();
  readonly #protected = new Lru<Entry>();
  #protectedDetailsBytes = 0;

  /** @param onEvict called for each entry that leaves for want of room */
  constructor(maxBytes: number, onEvict: () => void = () => {}) {
    this.#maxBytes = maxBytes;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#probation.size + this.#protected.size;
  }

  get bytes(): number {
    return this.#probation.bytes + this.#protected.bytes + this.#details.bytes;
  }

  /** The facts of an image under exactly this scope. @param key of the image, without scope */
  find(key: string, reference: Reference, scope: Scope): Entry | undefined {
    return this.get(key, scope) ?? (scope === sharedScope ? this.#sameDigest(reference) : undefined);
  }

  /** The same, without the digests of tags. */
  get(key: string, scope: Scope): Entry | undefined {
    return this.#get(scopedKey(key, scope));
  }

  /** Keeps facts that have a digest; they replace facts with the same key and scope. */
  put(key: string, scope: Scope, facts: ImageFacts & { readonly digest: string }, confirmedAt: number): void {
    const scoped = scopedKey(key, scope);
    const share = this.#shareOf(key.slice(0, key.indexOf('/')));
    const details = this.#details.take(facts, share);
    const entry = createEntry(scoped, scope, facts.digest, { details, share, confirmedAt });
    share.bytes += entry.bytes;
    share.entries += 1;
    const previous = this.#get(scoped);
    if (previous) this.remove(previous);
    this.#link(entry, previous?.isProtected === true);
    if (scope === sharedScope) this.#byDigest.set(entry.digest, entry);
    if (this.bytes > this.#maxBytes) this.#makeRoom(share);
  }

  /** @param now monotonic */
  touch(entry: Entry, now: number): void {
    if (entry.isProtected) this.#protected.touch(entry);
    else if (now - entry.confirmedAt < laterMs) this.#probation.touch(entry);
    else if (entry.listed) this.#move(entry, true);
  }

  /** Does nothing for an entry that is not in the store. */
  remove(entry: Entry): void {
    if (!entry.listed) return;
    const { details, digest, share } = entry;
    this.#unlink(entry);
    if (this.#byDigest.get(digest) === entry) this.#byDigest.delete(digest);
    this.#details.release(details);
    share.bytes -= entry.bytes;
    share.entries -= 1;
    for (const { host, entries, bytes } of [share, details.share]) {
      if (entries === 0 && bytes === 0) this.#shares.delete(host);
    }
  }

  /** Removes an image's facts of other digests. 100,000 entries take milliseconds. @returns whether any */
  removeOthers(key: string, digest: string): boolean {
    let removed = false;
    for (const list of [this.#probation, this.#protected]) {
      for (const entry of list.oldestFirst()) {
        if (entry.digest === digest || !isKeyOf(entry, key)) continue;
        this.remove(entry);
        removed = true;
      }
    }
    return removed;
  }

  /** Shared facts, the most recently used first. */
  shared(): Entry[] {
    const all = [...this.#protected.newestFirst(), ...this.#probation.newestFirst()];
    return all.filter(({ scope }) => scope === sharedScope);
  }

  #get(scoped: string): Entry | undefined {
    return this.#protected.get(scoped) ?? this.#probation.get(scoped);
  }

  #makeRoom(share: HostShare): void {
    if (share.bytes > this.#maxBytes * maxHostShare) this.#makeRoomWithin(share);
    while (this.bytes > this.#maxBytes) {
      while (this.#protectedBytes() > this.#maxBytes * protectedShare && this.#protected.oldest) {
        this.#move(this.#protected.oldest, false);
      }
      const oldest = this.#probation.oldest ?? this.#protected.oldest;
      if (!oldest) return;
      this.#evict(oldest);
    }
  }

  #makeRoomWithin(share: HostShare): void {
    const goal = this.#maxBytes * (1 - roomAtOnce);
    for (const list of [this.#probation, this.#protected]) {
      for (const entry of list.oldestFirst()) {
        if (this.bytes <= goal) return;
        if (entry.share === share) this.#evict(entry);
      }
    }
  }

  #evict(entry: Entry): void {
    this.remove(entry);
    this.#onEvict();
  }

  #protectedBytes(): number {
    return this.#protected.bytes + this.#protectedDetailsBytes;
  }

  #move(entry: Entry, isProtected: boolean): void {
    this.#unlink(entry);
    this.#link(entry, isProtected);
  }

  #link(entry: Entry, isProtected: boolean): void {
    const { details } = entry;
    entry.isProtected = isProtected;
    (isProtected ? this.#protected : this.#probation).put(entry);
    if (!isProtected) return;
    if (details.protectedUses === 0) this.#protectedDetailsBytes += details.bytes;
    details.protectedUses += 1;
  }

  #unlink(entry: Entry): void {
    const { details, isProtected } = entry;
    (isProtected ? this.#protected : this.#probation).remove(entry);
    if (!isProtected) return;
    details.protectedUses -= 1;
    if (details.protectedUses === 0) this.#protectedDetailsBytes -= details.bytes;
  }

  #sameDigest({ repository, digest }: Reference): Entry | undefined {
    const entry = digest === undefined ? undefined : this.#byDigest.get(digest);
    return entry && repositoryOf(entry) === repository ? entry : undefined;
  }

  #shareOf(host: string): HostShare {
    const present = this.#shares.get(host);
    if (present) return present;
    const share = { host: compact(host), bytes: 0, entries: 0 };
    this.#shares.set(share.host, share);
    return share;
  }
}

/** @param key of an image, without scope */
function isKeyOf(entry: Entry, key: string): boolean {
  return entry.key.startsWith(key) && entry.key === scopedKey(key, entry.scope);
}

/** The repository in the key of a shared entry. */
function repositoryOf({ key }: Entry): string {
  const at = key.indexOf('@');
  return at >= 0 ? key.slice(0, at) : key.slice(0, key.lastIndexOf(':'));
}

function createEntry(
  key: string,
  scope: Scope,
  digest: string,
  rest: Pick<Entry, 'details' | 'share' | 'confirmedAt'>,
): Entry {
  const texts = textBytes(key) + textBytes(digest) + textBytes(scope);
  const indexes = scope === sharedScope ? 2 : 1;
  return {
    key: compact(key),
    scope,
    digest: compact(digest),
    ...rest,
    isProtected: false,
    pausedUntil: Number.NEGATIVE_INFINITY,
    bytes: objectBytes(12) + texts + 2 * numberBytes + indexes * mapEntryBytes,
    ...unlinked,
  };
}
