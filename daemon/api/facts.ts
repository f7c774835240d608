/**
 * Looks up the image facts of a request, with a deadline. The cache looks them up in registries if needed, and shares its
 * places fairly by namespace and registry host. A disconnected client stops waiting; the lookup goes on.
 */
import { setMaxListeners } from 'node:events';
import { failedFacts, type ImageFacts } from '../../src/images/facts/facts.ts';
import type { FactsCache } from '../../src/images/cache/cache.ts';
import {
  InvalidReference,
  parseReference,
  shortNameOf,
  type Reference,
} from '../../src/images/references/reference.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { FactsRequest } from './facts-request.ts';

export interface FactsOptions {
  readonly cache: Pick<FactsCache, 'get' | 'shared' | 'size'>;
  /** Whether the node's runtime finds the registries of short names by itself. */
  readonly resolvesShortNames?: (() => boolean) | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The facts of each image in the request's order; failures have an `error`.
 * @param gone aborts when the client disconnects; then an answer rejects with its reason
 */
export function answerFacts(
  { images, namespace, pullSecrets, serviceAccount, deadlineMs }: FactsRequest,
  gone: AbortSignal,
  { cache, resolvesShortNames, clock, log }: FactsOptions,
): readonly Promise<ImageFacts>[] {
  const deadline = AbortSignal.timeout(deadlineMs);
  const signal = AbortSignal.any([gone, deadline]);
  setMaxListeners(0, signal);
  const ofPod = { ...(namespace !== undefined && { namespace }), ...(serviceAccount && { serviceAccount }) };
  async function lookUp({ image, ...how }: FactsRequest['images'][number]): Promise<ImageFacts> {
    let reference: Reference | undefined;
    try {
      reference = parseReference(image);
      const pullCredentials = await pullSecrets.lookup(reference.repository, signal);
      const shortName = resolvesShortNames?.() === true ? shortNameOf(image) : undefined;
      const named = shortName === undefined ? {} : { shortName };
      const lookup = { image, reference, ...named, ...how, pullCredentials, ...ofPod };
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
  return images.map(lookUp);
}
