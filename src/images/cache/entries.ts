/**
 * The entries of the cache, by image and scope. Each belongs to the namespace for which it was looked up. When
 * all together take too many bytes, the namespace with the most bytes loses the entry that it used longest ago,
 * so one that scans thousands of images evicts only its own.
 *
 * A use only marks an entry, and a marked one gets a second chance instead of being evicted (Corbató, "A Paging
 * Experiment with the Multics System", 1968). A `Map` in order of use copies its table when it is full of
 * deleted entries, which took 101 to 187 ms with 100,000 entries.
 */
import type { Clock } from '../../async/clock.ts';
import { type FactsError, type ImageRequest, factsErrorCodes } from '../facts/facts.ts';
import {
  compact,
  nextFailure,
  type Details,
  type Entry,
  type LookupFailure,
  type Known,
  keyOf,
  scopedKey,
  scopeOf,
  sharedScope,
} from './entry.ts';
import { counter, counts, gauge, type Metrics } from '../../telemetry/metrics.ts';

/** An image, and the namespace for which it is looked up. */
type OfNamespace = Pick<ImageRequest, 'reference' | 'shortName' | 'namespace'>;

interface Owner {
  /** The oldest first. */
  readonly entries: Set<Entry>;
  bytes: number;
}

const unknown = { known: undefined, failure: undefined, driftedAt: Number.NEGATIVE_INFINITY } as const;

/** An entry without its texts, measured by `npm run bench:memory` (Node 24). */
const entryBytes = 430;

/** Evicting one entry passes over this many at most, in case all of a full cache were used. */
const maxChances = 1000;

export class Entries {
  readonly #maxBytes: number;
  readonly #clock: Pick<Clock, 'monotonic' | 'random'>;
  readonly #byKey = new Map<string, Entry>();
  /** The shared entry of a tag, by the digest that it names: it answers for it in the same repository. */
  readonly #byDigest = new Map<string, Entry>();
  readonly #owners = new Map<string, Owner>();
  readonly #intern = createIntern();
  #bytes = 0;

  constructor(maxBytes: number, clock: Pick<Clock, 'monotonic' | 'random'>) {
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  get size(): number {
    return this.#byKey.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The entry of an image for all pods. */
  shared(request: ImageRequest): Entry | undefined {
    const { repository, digest = '' } = request.reference;
    const entry = this.#byKey.get(keyOf(request));
    const isOwn = entry?.known !== undefined || request.shortName !== undefined;
    const tagged = isOwn ? undefined : this.#byDigest.get(digest);
    return tagged?.key.startsWith(`${repository}:`) ? tagged : entry;
  }

  /** The entry for the credentials of the request, if it has some. */
  ofPod(request: ImageRequest): Entry | undefined {
    const scope = scopeOf(request);
    return scope === sharedScope ? undefined : this.#byKey.get(scopedKey(keyOf(request), scope));
  }

  newest(request: ImageRequest): Known | undefined {
    const [shared, ofPod] = [this.shared(request)?.known, this.ofPod(request)?.known];
    return shared && ofPod && shared.at < ofPod.at ? ofPod : (shared ?? ofPod);
  }

  /** A request uses an entry. One from an agent or a file belongs to the namespace that uses it first. */
  use(entry: Entry, namespace: string | undefined): void {
    entry.isUsed = true;
    if (entry.owner === '' && namespace !== undefined) this.#put({ ...entry, owner: namespace });
  }

  /**
   * Keeps facts, unless newer ones of the same image and scope are known.
   * @param stale whether the registry still fails
   * @returns whether it keeps them
   */
  know(image: OfNamespace, scope: string, known: Known, stale: boolean): boolean {
    const entry = this.#at(image, scope);
    const { known: before, driftedAt } = entry;
    if (known.at < Math.max(driftedAt, before?.at ?? driftedAt)) return false;
    this.#put({ ...entry, known, failure: stale ? entry.failure : undefined });
    return true;
  }

  /** Remembers a failed lookup. Only `not-found` ends what is known. */
  fail(image: OfNamespace, scope: string, error: FactsError): LookupFailure {
    const entry = this.#at(image, scope);
    const failure = nextFailure(entry.failure, error, this.#clock);
    this.#put({ ...entry, failure, known: error.code === 'not-found' ? undefined : entry.known });
    return failure;
  }

  /** Tags name these digests now: other facts of them are forgotten, in all scopes. @param digests by key */
  forgetOthers(digests: ReadonlyMap<string, string>): void {
    const driftedAt = this.#clock.monotonic();
    const isOther = ({ key, known }: Entry): boolean => {
      const digest = digests.get(key.split(' ', 1)[0] ?? '');
      return digest !== undefined && digest !== known?.digest;
    };
    for (const entry of [...this.#byKey.values()].filter(isOther))
      this.#put({ ...entry, ...unknown, driftedAt });
  }

  /** Shared entries with facts, the most recently confirmed first. */
  allShared(): readonly (Entry & { readonly known: Known })[] {
    const withFacts = (entry: Entry): entry is Entry & { known: Known } => entry.known !== undefined;
    const all = [...this.#byKey.values()].filter(withFacts).filter(({ key }) => isShared(key));
    return all.sort((a, b) => b.known.at - a.known.at);
  }

  #at(image: OfNamespace, scope: string): Entry {
    const key = scopedKey(keyOf(image), scope);
    const { namespace: owner = '' } = image;
    return this.#byKey.get(key) ?? { key: compact(key), owner, bytes: 0, isUsed: false, ...unknown };
  }

  /** Adds an entry, which replaces the one with its key, and makes room for it. */
  #put({ key, owner: name, known: found, failure, driftedAt }: Entry): void {
    const before = this.#byKey.get(key);
    if (before) this.#remove(before);
    const common = found && this.#intern(found.details);
    const known = common && { ...found, digest: compact(found.digest), details: common.details };
    const ownBytes = (common?.bytes ?? 0) + 2 * (failure?.error.message.length ?? 0);
    const bytes = entryBytes + key.length + ownBytes;
    const entry: Entry = { key, owner: name, bytes, isUsed: false, known, failure, driftedAt };
    const owner = this.#owners.get(name) ?? { entries: new Set(), bytes: 0 };
    this.#owners.set(name, owner);
    owner.entries.add(entry);
    this.#byKey.set(key, entry);
    if (known && isShared(key)) this.#byDigest.set(known.digest, entry);
    this.#count(owner, bytes);
    while (this.#bytes > this.#maxBytes) {
      const largest = [...this.#owners.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a));
      const oldest = oldestOf(largest.entries);
      if (!oldest) break;
      this.#remove(oldest);
    }
  }

  #remove(entry: Entry): void {
    this.#byKey.delete(entry.key);
    const { digest = '' } = entry.known ?? {};
    if (this.#byDigest.get(digest) === entry) this.#byDigest.delete(digest);
    const owner = this.#owners.get(entry.owner);
    if (!owner) return;
    owner.entries.delete(entry);
    this.#count(owner, -entry.bytes);
    if (owner.entries.size === 0) this.#owners.delete(entry.owner);
  }

  #count(owner: Owner, bytes: number): void {
    owner.bytes += bytes;
    this.#bytes += bytes;
  }
}

function isShared(scoped: string): boolean {
  return !scoped.includes(' ');
}

/** The entry to evict. Used ones before it get their second chance. */
function oldestOf(entries: Set<Entry>): Entry | undefined {
  let chances = maxChances;
  for (const entry of entries) {
    if (!entry.isUsed || chances === 0) return entry;
    chances -= 1;
    entry.isUsed = false;
    entries.delete(entry);
    entries.add(entry);
  }
  return undefined;
}

/** Clusters have some dozens of different ones. Any further ones are kept, and counted, for each image. */
const maxCommon = 1024;
/** Ten platforms take 500 characters. All common details together take 6 MiB at most. */
const maxCommonLength = 1024;

/** Details in use; equal ones once. The first ones that come are kept for as long as the process runs. */
function createIntern() {
  const byText = new Map<string, Details>();
  /** @returns a copy, which keeps no larger document alive, and what it takes beside the common ones */
  return (details: Details) => {
    const text = JSON.stringify(details);
    const common = byText.get(text) ?? (JSON.parse(text) as Details);
    if (byText.size < maxCommon && text.length <= maxCommonLength) byText.set(text, common);
    return { details: common, bytes: byText.has(text) ? 0 : 2 * text.length };
  };
}

const failures = counter('archwright_facts_failures_total', 'Failed lookups of images.', {
  code: factsErrorCodes,
});
const entries = gauge('archwright_facts_entries', 'Images in the cache.');
const bytes = gauge('archwright_facts_memory_bytes', 'Estimated memory of the cache.');

export const factsMetrics = [failures, entries, bytes];

export type CountFailure = ReturnType<typeof bindFactsMetrics>;

export function bindFactsMetrics(metrics: Metrics, cache: { readonly size: number; readonly bytes: number }) {
  metrics.beforeScrape(() => {
    metrics.gauge(entries).set(cache.size);
    metrics.gauge(bytes).set(cache.bytes);
  });
  return counts(metrics, failures, 'code', factsErrorCodes);
}
