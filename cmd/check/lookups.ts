/** Looks up each image of a run once, from the cache of earlier runs or at its registry. */
import type { Clock } from '../../src/async/clock.ts';
import { concurrently } from '../../src/async/concurrently.ts';
import {
  failedFacts,
  type FactsError,
  type ImageFacts,
  type ImageRequest,
} from '../../src/images/facts/facts.ts';
import type { FactsMemory } from '../../src/images/memory/memory.ts';
import { InvalidReference, parseReference, pullReference } from '../../src/images/references/reference.ts';

/** As in `inspect`: few enough not to look like an attack. */
const concurrentImages = 16;

export interface LookupOptions {
  readonly memory: Pick<FactsMemory, 'recall' | 'lookup'>;
  readonly architectures: readonly string[];
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'now'>;
  /** Called after each image. */
  readonly onProgress: (done: number, of: number) => void;
}

/** @returns facts by image as written; a failure is an answer */
export async function lookUpImages(
  images: ReadonlySet<string>,
  options: LookupOptions,
): Promise<ReadonlyMap<string, ImageFacts>> {
  const facts = new Map<string, ImageFacts>();
  const requests: ImageRequest[] = [];
  for (const image of images) {
    try {
      requests.push({
        image,
        reference: parseReference(image),
        pullPolicy: 'IfNotPresent',
        pullCredentials: [],
      });
    } catch (error) {
      if (!(error instanceof InvalidReference)) throw error;
      const { message } = error;
      facts.set(image, failedFacts(image, { code: 'invalid-reference', message }, options.clock.now()));
    }
  }
  const sameImages = [...Map.groupBy(requests, ({ reference }) => pullReference(reference).text).values()];
  const registries = new Registries(options);
  let done = 0;
  await concurrently(sameImages, concurrentImages, async (spellings) => {
    const [first] = spellings;
    if (first === undefined) return;
    const found = await registries.lookup(first);
    for (const { image } of spellings) facts.set(image, { ...found, image });
    done += 1;
    options.onProgress(done, sameImages.length);
  });
  return facts;
}

class Registries {
  readonly #options: LookupOptions;
  /** Registries that limit requests: they get no more of them in this run. */
  readonly #limited = new Map<string, FactsError>();

  constructor(options: LookupOptions) {
    this.#options = options;
  }

  async lookup(request: ImageRequest): Promise<ImageFacts> {
    const { memory, signal, clock } = this.#options;
    const known = memory.recall(request);
    // After this command reported a missing architecture, the image may have been pushed again.
    if (known && !this.#isDoubtful(known)) return known;
    const { domain } = request.reference;
    const limit = this.#limited.get(domain);
    if (limit) return known ?? failedFacts(request.image, limit, clock.now(), { endpoint: domain });
    const facts = await memory.lookup(
      { ...request, ...(known && { pullPolicy: 'Always' as const }) },
      { signal },
    );
    if (facts.error?.code === 'rate-limited') this.#limited.set(domain, facts.error);
    return facts;
  }

  #isDoubtful({ platforms, source, error }: ImageFacts): boolean {
    if (source === 'override' || error !== undefined) return false;
    return !this.#options.architectures.every((name) =>
      platforms.some(({ architecture }) => architecture === name),
    );
  }
}
