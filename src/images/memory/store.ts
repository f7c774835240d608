/**
 * The store of good facts: by image and scope, bounded by bytes, the least recently used leave first. Shared facts that were
 * learned by tag are found by their digest as well, in the same repository.
 */
import { detailsBytes, detailsOf, detailsText, makeEntry, type Entry } from './entry.ts';
import type { ImageFacts } from '../facts/facts.ts';
import { createInterner } from './intern.ts';
import { scopedKey, sharedScope, type Scope } from './scope.ts';
import { createLru } from './lru.ts';
import type { Reference } from '../references/reference.ts';
import { compact } from './size.ts';

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
