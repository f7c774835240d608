/** Looks up each image of a run once, from the cache of earlier runs or at its registry. */
import { systemClock } from '../../src/async/clock.ts';
import { concurrently } from '../../src/async/concurrently.ts';
import { failedFacts, type FactsError, type ImageFacts } from '../../src/images/facts/facts.ts';
import { InvalidReference } from '../../src/images/references/reference.ts';
import { openCliContext } from '../program/context.ts';
import type { Invocation } from '../program/subcommand.ts';
import { createProgress } from '../program/terminal.ts';
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
  /** Registries that limit requests: this run sends them no more. */
  const limited = new Map<string, FactsError>();
  const failed = (image: string, error: FactsError, endpoint = ''): ImageFacts =>
    failedFacts(image, error, systemClock.now(), { endpoint });

  async function lookup(image: string): Promise<ImageFacts> {
    const request = requestOf(image, 'IfNotPresent', nobody);
    const known = cache.peek(request);
    const { domain, digest } = request.reference;
    // The tag may have been pushed again after this command reported a missing architecture.
    const isToConfirm =
      known !== undefined && digest === undefined && lacksArchitecture(known, architectures);
    if (known && !isToConfirm) return known;
    const limit = limited.get(domain);
    if (limit) return known ?? failed(image, limit, domain);
    const options = { signal: invocation.stop };
    const facts = await cache.get(isToConfirm ? { ...request, maxAgeMs: 0 } : request, options);
    if (facts.error?.code === 'rate-limited') limited.set(domain, facts.error);
    return facts;
  }

  const facts = new Map<string, ImageFacts>();
  await concurrently([...images], concurrentImages, async (image) => {
    try {
      facts.set(image, await lookup(image));
    } catch (error) {
      if (!(error instanceof InvalidReference)) throw error;
      facts.set(image, failed(image, { code: 'invalid-reference', message: error.message }));
    }
    progress.show(`${facts.size} of ${images.size} images`);
  });
  return facts;
}

function lacksArchitecture(
  { platforms, source, error }: ImageFacts,
  architectures: readonly string[],
): boolean {
  if (source === 'override' || error !== undefined) return false;
  return !architectures.every((name) => platforms.some(({ architecture }) => architecture === name));
}
