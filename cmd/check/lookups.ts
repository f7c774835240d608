/** Looks up each image of a run once, from the cache of earlier runs or at its registry. */
import { systemClock } from '../../src/async/clock.ts';
import { concurrently } from '../../src/async/concurrently.ts';
import {
  failedFacts,
  type FactsError,
  type ImageFacts,
  type ImageRequest,
} from '../../src/images/facts/facts.ts';
import type { FactsCache } from '../../src/images/cache/cache.ts';
import { InvalidReference } from '../../src/images/references/reference.ts';
import { keyOf } from '../../src/images/cache/scope.ts';
import { openCliContext } from '../program/context.ts';
import { createProgress } from '../program/terminal.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openCachedLookups, type cacheFlags } from '../wiring/cached-lookups.ts';

/** No pod: nothing depends on a namespace or a service account. */
const nobody = { namespace: '', serviceAccount: undefined };

/** Few enough not to look like an attack, as in `inspect`. */
const concurrentImages = 16;

/** @returns facts by image as written; a failure is an answer */
export async function lookUpImages(
  invocation: Invocation<typeof cacheFlags>,
  images: ReadonlySet<string>,
  architectures: readonly string[],
): Promise<ReadonlyMap<string, ImageFacts>> {
  await using opened = new AsyncDisposableStack();
  const { cache, requestOf } = await openCachedLookups(invocation, await openCliContext(invocation), opened);
  const progress = createProgress(invocation.io);
  opened.defer(() => progress.end());
  const facts = new Map<string, ImageFacts>();
  const requests: ImageRequest[] = [];
  for (const image of images) {
    try {
      requests.push(requestOf(image, 'IfNotPresent', nobody));
    } catch (error) {
      if (!(error instanceof InvalidReference)) throw error;
      const { message } = error;
      facts.set(image, failedFacts(image, { code: 'invalid-reference', message }, systemClock.now()));
    }
  }
  const sameImages = [...Map.groupBy(requests, keyOf).values()];
  /** Registries that limit requests: this run sends them no more. */
  const limited = new Map<string, FactsError>();
  let done = 0;
  await concurrently(sameImages, concurrentImages, async (spellings) => {
    const [first] = spellings;
    if (first === undefined) return;
    const found = await lookup(first, cache, architectures, limited, invocation.stop);
    for (const { image } of spellings) facts.set(image, { ...found, image });
    done += 1;
    progress.show(`${done} of ${sameImages.length} images`);
  });
  return facts;
}

async function lookup(
  request: ImageRequest,
  cache: FactsCache,
  architectures: readonly string[],
  limited: Map<string, FactsError>,
  signal: AbortSignal,
): Promise<ImageFacts> {
  const known = cache.peek(request);
  const { domain, digest } = request.reference;
  // The tag may have been pushed again after this command reported a missing architecture.
  const isToConfirm = known !== undefined && digest === undefined && lacksArchitecture(known, architectures);
  if (known && !isToConfirm) return known;
  const limit = limited.get(domain);
  if (limit) return known ?? failedFacts(request.image, limit, systemClock.now(), { endpoint: domain });
  const facts = await cache.get(isToConfirm ? { ...request, maxAgeMs: 0 } : request, { signal });
  if (facts.error?.code === 'rate-limited') limited.set(domain, facts.error);
  return facts;
}

function lacksArchitecture(
  { platforms, source, error }: ImageFacts,
  architectures: readonly string[],
): boolean {
  if (source === 'override' || error !== undefined) return false;
  return !architectures.every((name) => platforms.some(({ architecture }) => architecture === name));
}
