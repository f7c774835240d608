/**
 * The documents of images that an agent has looked up by digest, which it sends with its facts to prove them
 * (`proof.ts`). Memory keeps only facts, because documents are ten to a hundred times as large. Documents
 * that were dropped are looked up again.
 */
import {
  failedFacts,
  type ImageFacts,
  type ImageFactsSource,
  type ImageRequest,
  type LookupOptions,
} from '../facts/facts.ts';
import { Lru, unlinked, type Linked } from '../memory/lru.ts';
import type { FactsMemory } from '../memory/memory.ts';
import { needsProof } from '../facts/proof.ts';
import { maxProofBytes } from '../../registry/manifest-lookup.ts';
import { maxDocuments } from '../facts/wire.ts';

/** About 800 images of 10 KiB (an index, or a manifest and its config), 3 % of an agent's memory. */
const defaultMaxBytes = 8 * 1_048_576;
/** Facts with more documents are not shared: a reader limits a line to 64 KiB. */
const maxSharedBytes = 32 * 1024;
/** What an entry costs beyond its documents. */
const entryBytes = 1024;

interface Entry extends Linked<Entry> {
  /** Empty if the documents of the image are too large to be sent. */
  readonly documents: readonly Uint8Array[];
}

export class DocumentStore {
  readonly #maxBytes: number;
  readonly #entries = new Lru<Entry>();

  constructor(maxBytes = defaultMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#entries.bytes;
  }

  /** Keeps the documents of a digest; the least recently used ones leave. */
  keep(digest: string, found: readonly Uint8Array[]): void {
    const isSendable = sizeOf(found) <= maxProofBytes && found.length <= maxDocuments;
    // A copy: a body may be a view of a larger buffer.
    const documents = isSendable ? found.map((bytes) => Uint8Array.from(bytes)) : [];
    const entries = this.#entries;
    entries.put({ key: digest, documents, bytes: entryBytes + sizeOf(documents), ...unlinked });
    while (entries.oldest && entries.bytes > this.#maxBytes) entries.remove(entries.oldest);
  }

  /** The documents of a digest without using them; empty if they are not here. */
  peek(digest: string): readonly Uint8Array[] {
    return this.#entries.get(digest)?.documents ?? [];
  }

  /** The documents of a digest; `undefined` if they are not here, empty if they are too large to be sent. */
  find(digest: string): readonly Uint8Array[] | undefined {
    const entry = this.#entries.get(digest);
    if (entry) this.#entries.touch(entry);
    return entry?.documents;
  }
}

/** A memory that gives out facts of digests only with their documents. */
export class ProvingMemory implements ImageFactsSource {
  readonly #options: ProvingMemoryOptions;

  constructor(options: ProvingMemoryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#options.memory.size;
  }

  /** @returns failed facts if the documents are missing or too large. @throws the signal's reason */
  async lookup(request: ImageRequest, options: LookupOptions): Promise<ImageFacts> {
    const { memory, store } = this.#options;
    const facts = await memory.lookup(request, options);
    const { reference, image } = request;
    if (reference.digest === undefined || !needsProof(reference, facts)) return facts;
    if (!store.find(reference.digest)) {
      const again = await memory.lookupAgain(request, options);
      if (!needsProof(reference, again)) return again;
    }
    const documents = store.find(reference.digest);
    if (documents && documents.length > 0) return { ...facts, documents: documents.map(base64) };
    return failedFacts(image, documents ? tooLarge : dropped, Date.parse(facts.freshUntil));
  }

  /** The memory's shared facts; those of a digest only if their documents are here and small. */
  *shared(): Generator<ImageFacts> {
    for (const facts of this.#options.memory.shared()) {
      const digest = /@(.+)$/u.exec(facts.image)?.[1];
      const documents = digest === undefined ? [] : this.#options.store.peek(digest);
      if (digest === undefined) yield facts;
      else if (documents.length > 0 && sizeOf(documents) <= maxSharedBytes)
        yield { ...facts, documents: documents.map(base64) };
    }
  }
}

interface ProvingMemoryOptions {
  /** Its source keeps the documents of what it looks up in `store`. */
  readonly memory: Pick<FactsMemory, 'lookup' | 'lookupAgain' | 'shared' | 'size'>;
  readonly store: DocumentStore;
}

const tooLarge = {
  code: 'too-large',
  message: `the manifests and configs of this digest have more than ${maxProofBytes / 1_048_576} MiB`,
} as const;
/** Other lookups needed the room at the same moment. */
const dropped = {
  code: 'unavailable',
  message: 'the manifests of this digest were dropped; try again',
} as const;

function sizeOf(documents: readonly Uint8Array[]): number {
  return documents.reduce((sum, { length }) => sum + length, 0);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
