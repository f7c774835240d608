/**
 * `/v1/facts`: looks up image facts, with a deadline, and streams all shared facts. The memory looks up
 * images in registries if needed, and shares its places fairly by namespace and registry host. A disconnected
 * client ends its lookups.
 */
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { failedFacts, isOfPod, type ImageFacts } from '../../src/images/facts/facts.ts';
import type { FactsMemory } from '../../src/images/memory/memory.ts';
import { InvalidReference, parseReference, type Reference } from '../../src/images/references/reference.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { FactsRequest } from './facts-request.ts';

export interface FactsOptions {
  readonly memory: Pick<FactsMemory, 'lookup' | 'shared' | 'size'>;
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
  { memory, clock, log }: FactsOptions,
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
      return await memory.lookup(lookup, { signal });
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

/** All facts that the memory shares, as newline-delimited JSON in chunks of some KiB. */
export function streamFacts(memory: FactsOptions['memory'], maxBytes: number): Readable {
  return Readable.from(chunks(memory, maxBytes), { objectMode: false });
}

/** Used entries move to the end while the memory is read, so their number is limited too. */
function* chunks(memory: FactsOptions['memory'], maxBytes: number): Generator<string> {
  let images = memory.size;
  let bytes = 0;
  let chunk = '';
  for (const facts of memory.shared()) {
    // The memory does not share these. This check is a second safeguard.
    if (isOfPod(facts)) continue;
    const line = `${JSON.stringify(facts)}\n`;
    bytes += Buffer.byteLength(line);
    images -= 1;
    if (images < 0 || bytes > maxBytes) break;
    chunk += line;
    if (chunk.length < chunkLength) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}
