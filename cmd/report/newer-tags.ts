/**
 * `--newer-tags`: images that have the architecture in a newer tag. Of the tags of a repository at most three
 * are looked up. This machine sends the requests.
 */
import { concurrently } from '../../src/async/concurrently.ts';
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import { CredentialError } from '../../src/credentials/credential.ts';
import type { ImageFactsSource, ImageRequest } from '../../src/images/facts/facts.ts';
import { InvalidReference, parseReference } from '../../src/images/references/reference.ts';
import type { TagSource } from '../../src/images/sources/tag-source.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { imageRows, type JudgedPod } from './rows.ts';
import { newerTags } from './tag-order.ts';

/** Each costs a list and up to three lookups, which count against rate limits. */
const maxImages = 50;
const concurrentImages = 4;
const imageLimitMs = 20_000;

export interface NewerTagOptions {
  readonly architecture: string;
  readonly tags: TagSource;
  readonly inspector: ImageFactsSource;
  readonly pullSecrets: PullSecrets;
  readonly stop: AbortSignal;
  /** Called after each image. */
  readonly onProgress: (done: number, of: number) => void;
  readonly onProblem: (message: string) => void;
}

/** @returns by image as written in the pods: the same image with the newer tag */
export async function findNewerTags(
  pods: readonly JudgedPod[],
  options: NewerTagOptions,
): Promise<ReadonlyMap<string, string>> {
  const lacking = new Set(
    pods.flatMap(({ blockers }) =>
      blockers.flatMap(({ cause, image }) =>
        (cause === 'image' || cause === 'broken') && image !== undefined ? [image] : [],
      ),
    ),
  );
  const images = imageRows(pods)
    .map(({ image }) => image)
    .filter((image) => lacking.has(image))
    .slice(0, maxImages);
  if (lacking.size > images.length)
    options.onProblem(
      `newer tags: only the ${maxImages} images with the highest CPU requests were looked up`,
    );
  const search = new Search(options);
  const found = new Map<string, string>();
  let done = 0;
  await concurrently(images, concurrentImages, async (image) => {
    const user = pods.find((pod) => pod.images.some((each) => each.image === image));
    const newer = user && (await search.find(image, user));
    if (newer !== undefined) found.set(image, newer);
    done += 1;
    options.onProgress(done, images.length);
  });
  return found;
}

class Search {
  readonly #options: NewerTagOptions;

  constructor(options: NewerTagOptions) {
    this.#options = options;
  }

  async find(image: string, user: JudgedPod): Promise<string | undefined> {
    const { stop, onProblem } = this.#options;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(imageLimitMs)]);
    try {
      return await this.#newerOf(image, user, signal);
    } catch (error) {
      if (error instanceof InvalidReference) return undefined;
      if (!(error instanceof RegistryError || error instanceof CredentialError) && !signal.aborted)
        throw error;
      const reason = error instanceof Error ? error.message : 'no answer in time';
      onProblem(`newer tags: ${reason}`);
      return undefined;
    }
  }

  async #newerOf(image: string, user: JudgedPod, signal: AbortSignal): Promise<string | undefined> {
    const { architecture, inspector, onProblem } = this.#options;
    const request = await this.#requestOf(image, user, signal);
    const { tag, digest, repository } = request.reference;
    if (tag === undefined || digest !== undefined) return undefined;
    const { tags, isComplete } = await this.#options.tags(request, signal);
    if (!isComplete)
      onProblem(`newer tags: ${repository} has more than the ${tags.length} tags that were listed`);
    for (const newer of newerTags(tag, tags)) {
      const name = `${image.slice(0, -tag.length)}${newer}`;
      const facts = await inspector.lookup(
        { ...request, image: name, reference: parseReference(name) },
        { signal },
      );
      const { os } = user.pod.made;
      if (facts.platforms.some((each) => each.os === os && each.architecture === architecture)) return name;
    }
    return undefined;
  }

  async #requestOf(image: string, { pod }: JudgedPod, signal: AbortSignal): Promise<ImageRequest> {
    const { namespace, pullSecrets, serviceAccount } = pod.made.wanted;
    const reference = parseReference(image);
    const source = await this.#options.pullSecrets.source(namespace, pullSecrets, signal);
    const pullCredentials = await source.lookup(reference.repository);
    const request = { image, reference, pullPolicy: 'IfNotPresent', pullCredentials, namespace } as const;
    return serviceAccount === undefined ? request : { ...request, serviceAccount };
  }
}
