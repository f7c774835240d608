/**
 * `/v1/facts`: looks up image facts, with a deadline, and streams all shared facts. The cache looks up
 * images in registries if needed, and shares its places fairly by namespace and registry host. A disconnected
 * client ends its lookups.
 */
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { failedFacts, isOfPod, type ImageFacts } from '../../src/images/facts/facts.ts';
import type { FactsCache } from '../../src/images/cache/cache.ts';
import { InvalidReference, parseReference, type Reference } from '../../src/images/references/reference.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { FactsRequest } from './facts-request.ts';

export interface FactsOptions {
  readonly cache: Pick<FactsCache, 'get' | 'shared' | 'size'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The size of a TLS record. A write for each line would cost more than its bytes. */
const chunkLength = 16 * 1024;

/**
 * The facts of each image in the request's order; failures have an `error`.
 * @param onFacts called with the facts of an image as soon as they are found
 * @param gone aborts when the client disconnects; then this rejects with its reason
 */
export async function answerFacts(
  { images, namespace, pullSecrets, serviceAccount, deadlineMs }: FactsRequest,
  gone: AbortSignal,
  { cache, clock, log }: FactsOptions,
  onFacts: (facts: ImageFacts) => void = () => undefined,
): Promise<readonly ImageFacts[]> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const signal = AbortSignal.any([gone, deadline]);
  setMaxListeners(0, signal);
  const ofPod = { ...(namespace !== undefined && { namespace }), ...(serviceAccount && { serviceAccount }) };
  async function lookUp({ image, ...how }: FactsRequest['images'][number]): Promise<ImageFacts> {
    let reference: Reference | undefined;
    try {
      reference = parseReference(image);
      const pullCredentials = await pullSecrets.lookup(reference.repository, signal);
      const lookup = { image, reference, ...how, pullCredentials, ...ofPod };
      return await cache.get(lookup, { signal });
    } catch (error) {
      if (reference === undefined && error instanceof InvalidReference) {
        return failedFacts(image, { code: 'invalid-reference', message: error.message }, clock.now());
      }
      if (gone.aborted) throw error;
      if (deadline.aborted) {
        const message = `no answer within ${deadlineMs} ms; the lookup in the registry continues`;
        return failedFacts(image, { code: 'timeout', message }, clock.now());
      }
      log.error({ err: error, image }, 'the lookup of an image failed unexpectedly');
      const message = 'the agent failed to answer; its log says why';
      return failedFacts(image, { code: 'unavailable', message }, clock.now());
    }
  }
  const results = images.map(async (image) => {
    const facts = await lookUp(image);
    onFacts(facts);
    return facts;
  });
  const facts = await Promise.all(results);
  gone.throwIfAborted();
  return facts;
}

/** All shared facts of the cache, as newline-delimited JSON in chunks of some KiB. */
export function streamFacts(cache: Pick<FactsCache, 'shared'>, maxBytes: number): Readable {
  return Readable.from(chunks(cache, maxBytes), { objectMode: false });
}

function* chunks(cache: Pick<FactsCache, 'shared'>, maxBytes: number): Generator<string> {
  let bytes = 0;
  let chunk = '';
  for (const facts of cache.shared()) {
    // The cache does not share these. This check is a second safeguard.
    if (isOfPod(facts)) continue;
    const line = `${JSON.stringify(facts)}\n`;
    bytes += Buffer.byteLength(line);
    if (bytes > maxBytes) break;
    chunk += line;
    if (chunk.length < chunkLength) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}
