/**
 * `POST /v1/facts`: its body, and the facts of each image, with a deadline. The cache looks them up in registries if
 * needed, and shares its places fairly by namespace and registry host. A disconnected client stops waiting; the
 * lookup goes on.
 */
import { isUtf8 } from 'node:buffer';
import { setMaxListeners } from 'node:events';
import * as v from 'valibot';
import { auths } from '../../src/credentials/auths.ts';
import { isNamespaceName, isObjectName } from '../../src/credentials/credential.ts';
import { parseJson, readShape } from '../../src/http/json.ts';
import { ApiError } from './outcomes.ts';
import { failedFacts, type FactsErrorCode, type ImageFacts } from '../../src/images/facts/facts.ts';
import type { FactsCache } from '../../src/images/cache/cache.ts';
import {
  InvalidReference,
  maxImageLength,
  parseReference,
  shortNameOf,
  type Reference,
} from '../../src/images/references/reference.ts';
import type { Clock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';

/** A pod has some dozens of images at most. */
export const maxImages = 1000;
/** No registry answers faster than the minimum. The API server limits a webhook to 30 s. */
export const deadlineLimits = { leastMs: 10, mostMs: 30_000 };

const body = v.pipe(
  v.strictObject({
    images: v.pipe(
      v.array(v.unknown()),
      v.maxLength(maxImages),
      v.array(
        v.strictObject({
          image: v.pipe(v.string(), v.nonEmpty(), v.maxLength(maxImageLength)),
          /** How old the answer may be. Infinity, which JSON has not, if it is absent. */
          maxAgeMs: v.optional(v.pipe(v.number(), v.minValue(0)), Number.POSITIVE_INFINITY),
        }),
      ),
    ),
    deadlineMs: v.pipe(
      v.number(),
      v.finite(),
      v.gtValue(0),
      v.toMinValue(deadlineLimits.leastMs),
      v.toMaxValue(deadlineLimits.mostMs),
    ),
    auths: v.optional(auths, {}),
    /** The pod's: namespaces share the agent fairly. */
    namespace: v.exactOptional(v.pipe(v.string(), v.check(isNamespaceName, 'must be a name of a namespace'))),
    serviceAccount: v.exactOptional(
      v.pipe(
        v.strictObject({ namespace: v.string(), name: v.string() }),
        v.check(isObjectName, 'must have names of a namespace and a service account'),
      ),
    ),
  }),
  v.transform(({ auths: pullSecrets, ...request }) => ({ ...request, pullSecrets })),
);

/** With the pod's credentials, for this request only. */
export type FactsRequest = v.InferOutput<typeof body>;

/**
 * Unknown, missing or invalid fields are errors: the sender is archwright too, so they are bugs that must be
 * noticed.
 * @throws ApiError `bad-request`, which quotes no values
 */
export function parseFactsRequest(bytes: Buffer): FactsRequest {
  const json = isUtf8(bytes) ? parseJson(bytes.toString()) : undefined;
  if (json === undefined) throw new ApiError('bad-request', 'the body is not JSON');
  return readShape(
    body,
    json,
    (where, problem) => new ApiError('bad-request', `${where === '' ? 'the body' : where} ${problem}`),
  );
}

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
    const failed = (code: FactsErrorCode, message: string) =>
      failedFacts(image, { code, message }, clock.now());
    try {
      reference = parseReference(image);
      const pullCredentials = await pullSecrets.lookup(reference.repository, signal);
      const shortName = resolvesShortNames?.() === true ? shortNameOf(image) : undefined;
      const named = shortName === undefined ? {} : { shortName };
      const lookup = { image, reference, ...named, ...how, pullCredentials, ...ofPod };
      return await cache.get(lookup, { signal });
    } catch (error) {
      if (reference === undefined && error instanceof InvalidReference)
        return failed('invalid-reference', error.message);
      if (gone.aborted) throw error;
      if (deadline.aborted)
        return failed('timeout', `no answer within ${deadlineMs} ms; the lookup in the registry continues`);
      log.error({ err: error, image }, 'the lookup of an image failed unexpectedly');
      return failed('unavailable', 'the agent failed to answer; its log says why');
    }
  }
  return images.map(lookUp);
}
