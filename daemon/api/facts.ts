/**
 * `/v1/facts`: looks up image facts, with a deadline, and streams all shared facts. The memory looks up images in registries if needed. A
 * disconnected client ends its lookups.
 */
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { concurrently } from '../../src/async/concurrently.ts';
import { failedFacts, type ImageFacts } from '../../src/images/facts/facts.ts';
import type { FactsMemory } from '../../src/images/memory/memory.ts';
import { InvalidReference, parseReference, type Reference } from '../../src/images/references/reference.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { FactsRequest } from './facts-request.ts';

export interface FactsApi {
  /**
   * The facts of each image in the request's order; failures have an `error`.
   * @param gone aborts when the client disconnects; then this rejects with its reason
   */
  answer(request: FactsRequest, gone: AbortSignal): Promise<readonly ImageFacts[]>;
  /** All facts that the memory shares, as newline-delimited JSON in chunks of some KiB. */
  stream(): Readable;
}

export interface FactsApiOptions {
  readonly memory: Pick<FactsMemory, 'lookup' | 'shared' | 'size'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Concurrent lookups of one request. */
  readonly concurrentImages: number;
  /** Size of one `stream`. */
  readonly maxStreamBytes: number;
}

/** The size of a TLS record. A write for each line would cost more than its bytes. */
const chunkLength = 16 * 1024;

export function createFactsApi(options: FactsApiOptions): FactsApi {
  const { memory, clock, log } = options;

  async function answer(request: FactsRequest, gone: AbortSignal): Promise<readonly ImageFacts[]> {
    const deadline = AbortSignal.timeout(request.deadlineMs);
    const signal = AbortSignal.any([gone, deadline]);
    setMaxListeners(0, signal);
    const ofAccount = request.serviceAccount && { serviceAccount: request.serviceAccount };

    const facts = await concurrently(
      request.images,
      options.concurrentImages,
      async ({ image, pullPolicy }) => {
        const reference = referenceOf(image);
        if (reference instanceof InvalidReference) {
          return failedFacts(image, { code: 'invalid-reference', message: reference.message }, clock.now());
        }
        try {
          const pullCredentials = await request.pullSecrets.lookup(reference.repository, signal);
          const lookup = { image, reference, pullPolicy, pullCredentials, ...ofAccount };
          return await memory.lookup(lookup, { signal });
        } catch (error) {
          if (gone.aborted) throw error;
          return failure(image, error, deadline.aborted, request.deadlineMs);
        }
      },
    );
    gone.throwIfAborted();
    return facts;
  }

  function failure(image: string, error: unknown, late: boolean, deadlineMs: number): ImageFacts {
    if (late) {
      const message = `no answer within ${deadlineMs} ms; the lookup in the registry continues`;
      return failedFacts(image, { code: 'timeout', message }, clock.now());
    }
    log.error({ err: error, image }, 'the lookup of an image failed unexpectedly');
    const message = 'the agent failed to answer; its log says why';
    return failedFacts(image, { code: 'unavailable', message }, clock.now());
  }

  return {
    answer,
    stream: () => Readable.from(chunks(memory, options.maxStreamBytes), { objectMode: false }),
  };
}

/** The memory changes while it is read, and used entries move to its end. The limit on their number ensures an end. */
function* chunks(memory: FactsApiOptions['memory'], maxBytes: number): Generator<string> {
  let images = memory.size;
  let bytes = 0;
  let chunk = '';
  for (const facts of memory.shared()) {
    // The memory does not share these. This check is a second safeguard.
    if (facts.credentialSource === 'pull-secret' || facts.credentialSource === 'service-account') continue;
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

function referenceOf(image: string): Reference | InvalidReference {
  try {
    return parseReference(image);
  } catch (error) {
    if (error instanceof InvalidReference) return error;
    throw error;
  }
}
