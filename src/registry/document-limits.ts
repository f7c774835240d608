/**
 * Limits on the documents of registries, which authors of pods choose; `src/http/json.ts` bounds the structure of
 * each. Usual documents are never refused, so that nobody can use up the limits of a registry that others use.
 */
import type { Clock } from '../async/clock.ts';
import { FairSemaphore, type Leave } from '../async/fair-semaphore.ts';
import { RateLimiters } from '../async/rate-limiter.ts';
import type { LargeBody } from '../http/body.ts';
import { maxValues, sizeOfJson } from '../http/json.ts';
import { TransportError } from '../http/transport-error.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { RegistryError } from './manifest-lookup.ts';

const mebibyte = 1024 * 1024;

/** Two of the largest manifests. Real lookups read under 100 KiB, with a long history 1 MiB. */
const maxLookupBytes = 8 * mebibyte;
/** Manifests have 1 to 20 KiB, most configs less than 64 KiB. */
const largeAfterBytes = 64 * 1024;
/** At most 4 MiB each: 48 MiB of an agent's 256 MiB. */
const largeDocuments = 12;

/**
 * Work is counted in bytes that are hashed, decoded and scanned: about 7 ns each. A value costs as much as
 * 256 bytes (measured on Node 24: objects 0.2 µs, distinct keys 1 to 2 µs).
 */
const valueWork = 256;

/** Documents with less work are free: 2 ms. An index of 80 platforms has 1,000 values. */
const freeWork = 256 * 1024;

/** Each registry has about a second of CPU at once, then 3 % of one CPU. Image references choose registries. */
const largeWork = { burst: 128 * mebibyte, perSecond: 4 * mebibyte };
const maxRegistries = 1000;

type Registry = Pick<Endpoint, 'host' | 'namespace'>;

/** The documents of one lookup, at all endpoints together. */
export type LookupDocuments = ReturnType<ReturnType<typeof createDocumentLimits>>;

/** The limits of a process: large documents in memory, with a share for each namespace, and their work. */
export function createDocumentLimits(clock: Clock) {
  const large = new FairSemaphore({ places: largeDocuments });
  const works = new RateLimiters({ ...largeWork, clock }, maxRegistries);

  /** A mirror serves several registries, and each of them has its own share. */
  function spend({ host, namespace }: Registry, work: number): void {
    if (work <= freeWork) return;
    const retryAfterMs = Math.ceil(works.get(`${host} for ${namespace}`).takeOrDelayMs(work));
    if (retryAfterMs === 0) return;
    const message = `${host}: its large documents took too much work; smaller ones are still read`;
    throw new RegistryError('rate-limited', host, message, { retryAfterMs });
  }

  /** @param podNamespace of the pod for which the lookup is made */
  return (podNamespace = '') => {
    let bytes = 0;
    return {
      /** A place in memory for a document in case that it is large. It is held until it is disposed of. */
      place: (where: string, signal: AbortSignal): LargeBody & Disposable => {
        let leave: Leave | undefined;
        const admit = async (): Promise<void> => {
          leave ??= await large.enter(podNamespace, signal).catch((error: unknown) => {
            throw new TransportError('aborted', where, 'gave up waiting for other large documents', error);
          });
        };
        return { afterBytes: largeAfterBytes, admit, [Symbol.dispose]: () => leave?.() };
      },
      /**
       * Counts a document before it is hashed and parsed.
       * @throws RegistryError `too-large` for the bytes of this lookup, `rate-limited` for the registry's work
       */
      count: (registry: Registry, body: Uint8Array): void => {
        bytes += body.length;
        const { host } = registry;
        const message = `${host}: the documents of the image are larger than ${maxLookupBytes} bytes in total`;
        if (bytes > maxLookupBytes) throw new RegistryError('too-large', host, message);
        spend(registry, body.length);
        // One with more is not parsed.
        spend(registry, Math.min(sizeOfJson(body).values, maxValues) * valueWork);
      },
    };
  };
}
