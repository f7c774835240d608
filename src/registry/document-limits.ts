/**
 * Limits on the documents of registries. The author of a pod chooses the registry, and a registry chooses its
 * documents. `src/http/json.ts` bounds the structure of each document before it is parsed. Here the rest is
 * bounded:
 *
 * - For each lookup: the bytes of its documents.
 * - For the process: documents in memory at the same time that are larger than usual, with a share for each
 *   namespace.
 * - For each registry: the work of parsing documents that are larger than usual.
 *
 * Usual documents are never refused, so that an attacker cannot use up the limits of a registry that others
 * use.
 */
import { BoundedMap } from '../async/bounded-map.ts';
import type { Clock } from '../async/clock.ts';
import { FairSemaphore, type Leave } from '../async/fair-semaphore.ts';
import type { LargeBody } from '../http/body.ts';
import { TransportError } from '../http/transport-error.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { RegistryError } from './manifest-lookup.ts';

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** Two of the largest manifests. Real lookups read under 100 KiB, with a long history 1 MiB. */
const maxLookupBytes = 8 * mebibyte;

/** Manifests have 1 to 20 KiB, most configs less than 64 KiB. */
const largeAfterBytes = 64 * kibibyte;

/** At most 4 MiB each: 48 MiB of an agent's 256 MiB. */
const largeDocuments = 12;

/**
 * Work is counted in bytes that are hashed, decoded and scanned: about 7 ns each. A value costs as much as
 * 256 bytes (measured on Node 24: objects 0.2 µs, distinct keys 1 to 2 µs).
 */
const valueWork = 256;

/** Documents with less work are free: 2 ms. An index of 80 platforms has 1,000 values. */
const freeWork = 256 * kibibyte;

/** About a second of CPU at once, then 3 % of one CPU. */
const maxWork = 128 * mebibyte;
const workPerSecond = 4 * mebibyte;

/** Image references choose registries, so there could be any number. */
const maxRegistries = 1000;

type Registry = Pick<Endpoint, 'host' | 'namespace'>;

interface Spent {
  readonly work: number;
  /** Monotonic. */
  readonly at: number;
}

/** The limits of a process. */
export class DocumentLimits {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #large = new FairSemaphore({ places: largeDocuments });
  readonly #spent = new BoundedMap<string, Spent>(maxRegistries);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Waits until there is room for one more large document. */
  enter(namespace: string, signal: AbortSignal): Promise<Leave> {
    return this.#large.enter(namespace, signal);
  }

  /** @throws RegistryError `rate-limited` if the registry's documents caused too much work in a short time */
  spend(registry: Registry, work: number): void {
    if (work <= freeWork) return;
    // A mirror serves several registries, and each of them has its own share.
    const key = `${registry.host} for ${registry.namespace}`;
    const now = this.#clock.monotonic();
    const { work: before, at } = this.#spent.get(key) ?? { work: 0, at: now };
    const left = Math.max(0, before - ((now - at) / 1000) * workPerSecond);
    if (left + work <= maxWork) {
      this.#spent.set(key, { work: left + work, at: now });
      return;
    }
    const retryAfterMs = Math.ceil(((left + work - maxWork) / workPerSecond) * 1000);
    const message = `${registry.host}: its large documents took too much work; smaller ones are still read`;
    throw new RegistryError('rate-limited', registry.host, message, { retryAfterMs });
  }
}

/** The documents of one lookup, at all endpoints together. */
export class LookupDocuments {
  readonly #limits: DocumentLimits;
  readonly #namespace: string;
  #bytes = 0;

  /** @param namespace of the pod */
  constructor(limits: DocumentLimits, namespace = '') {
    this.#limits = limits;
    this.#namespace = namespace;
  }

  /**
   * Fetches a document and uses it. A large document keeps its place in memory until it was used.
   * @throws RegistryError `too-large` if the documents of this lookup have too many bytes, `rate-limited`
   */
  async read<Response extends { readonly body: Buffer }, Used>(
    registry: Registry,
    signal: AbortSignal,
    fetch: (large: LargeBody) => Promise<Response>,
    use: (response: Response) => Used,
  ): Promise<Used> {
    let leave: Leave | undefined;
    const admit = async (): Promise<void> => {
      try {
        leave ??= await this.#limits.enter(this.#namespace, signal);
      } catch (error) {
        const message = 'given up while waiting for other large documents';
        throw new TransportError('aborted', registry.host, message, error);
      }
    };
    try {
      const response = await fetch({ afterBytes: largeAfterBytes, admit });
      this.#count(registry, response.body.length);
      return use(response);
    } finally {
      leave?.();
    }
  }

  /** Called with the number of values of a document before it is parsed. */
  spendOnValues(registry: Registry, values: number): void {
    this.#limits.spend(registry, values * valueWork);
  }

  #count(registry: Registry, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > maxLookupBytes) {
      const message = `${registry.host}: the documents of the image are larger than ${maxLookupBytes} bytes together`;
      throw new RegistryError('too-large', registry.host, message);
    }
    this.#limits.spend(registry, bytes);
  }
}
