/**
 * What `/v1/facts` does: answers questions about images, and tells what is known. Questions are answered from memory, which
 * asks registries where it has to; here they get their time limit, and whoever went away is not waited for.
 */
import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { concurrently } from '../../src/async/concurrently.ts';
import { failedFacts } from '../../src/images/facts/failed-facts.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import type { FactsMemory } from '../../src/images/memory/memory.ts';
import { InvalidReference, parseReference, type Reference } from '../../src/images/references/reference.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { FactsRequest } from './facts-request.ts';

export interface FactsApi {
  /**
   * Answers each image, in the request's order. A failure is an answer with `error`.
   * @param gone aborts when the client went away; then rejects with its reason
   */
  answer(request: FactsRequest, gone: AbortSignal): Promise<readonly ImageFacts[]>;
  /** What is known and may be told to anyone, as newline-delimited JSON in pieces of some KiB. */
  known(): Readable;
}

export interface FactsApiOptions {
  readonly memory: Pick<FactsMemory, 'lookup' | 'shared' | 'size'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Images of one request that are asked for at the same time. */
  readonly concurrentImages: number;
  /** What `known` tells at most. */
  readonly maxKnownBytes: number;
}

/** A write costs more than the bytes of one line; pieces of this size fill a TLS record. */
const pieceLength = 16 * 1024;

/** Makes the API over a memory. */
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
          const question = { image, reference, pullPolicy, pullCredentials, ...ofAccount };
          return await memory.lookup(question, { signal });
        } catch (error) {
          if (gone.aborted) throw error;
          return notAnswered(image, error, deadline.aborted, request.deadlineMs);
        }
      },
    );
    gone.throwIfAborted();
    return facts;
  }

  function notAnswered(image: string, error: unknown, late: boolean, deadlineMs: number): ImageFacts {
    if (late) {
      const message = `not known within ${deadlineMs} ms; the registry is still being asked`;
      return failedFacts(image, { code: 'timeout', message }, clock.now());
    }
    log.error({ err: error, image }, 'a question about an image failed unexpectedly');
    const message = 'the agent failed to answer; its log says why';
    return failedFacts(image, { code: 'unavailable', message }, clock.now());
  }

  return {
    answer,
    known: () => Readable.from(pieces(memory, options.maxKnownBytes), { objectMode: false }),
  };
}

/**
 * Memory goes on changing while it is read, and what is used moves to its end: without a limit in number the reader might
 * never arrive there.
 */
function* pieces(memory: FactsApiOptions['memory'], maxBytes: number): Generator<string> {
  let images = memory.size;
  let bytes = 0;
  let piece = '';
  for (const facts of memory.shared()) {
    // Memory does not share these; this is the door through which they would leave.
    if (facts.credentialSource === 'pull-secret' || facts.credentialSource === 'service-account') continue;
    const line = `${JSON.stringify(facts)}\n`;
    bytes += Buffer.byteLength(line);
    images -= 1;
    if (images < 0 || bytes > maxBytes) break;
    piece += line;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function referenceOf(image: string): Reference | InvalidReference {
  try {
    return parseReference(image);
  } catch (error) {
    if (error instanceof InvalidReference) return error;
    throw error;
  }
}
