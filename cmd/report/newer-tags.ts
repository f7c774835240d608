/**
 * `--newer-tags`: images that have the architecture in a newer tag. Of the tags of a repository at most three
 * are looked up. This machine sends the requests.
 */
import { concurrently } from '../../src/async/concurrently.ts';
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import { CredentialError } from '../../src/credentials/credential.ts';
import type { ImageFactsSource, ImageRequest } from '../../src/images/facts/facts.ts';
import { InvalidReference, parseReference } from '../../src/images/references/reference.ts';
import { byName } from '../../src/names/values.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { imageRows, type JudgedPod } from './rows.ts';
import type { TagLists } from './tag-lists.ts';
import { newerTags } from './tag-order.ts';

/** Each costs a list and up to three lookups, which count against rate limits. */
const maxImages = 50;
const concurrentImages = 4;
const imageLimitMs = 20_000;

export interface NewerTagOptions {
  readonly architecture: string;
  readonly lists: Pick<TagLists, 'tags'>;
  readonly inspector: ImageFactsSource;
  readonly pullSecrets: PullSecrets;
  readonly stop: AbortSignal;
  /** Called after each image. */
  readonly onProgress: (done: number, of: number) => void;
  /** Called once for each problem. */
  readonly onProblem: (problem: string) => void;
}

export interface NewerTags {
  /** By image as written in the pods: the same image with a newer tag that has the architecture. */
  readonly byImage: ReadonlyMap<string, string>;
  /** Why some tags were not looked up. */
  readonly problems: readonly string[];
}

export async function findNewerTags(
  pods: readonly JudgedPod[],
  options: NewerTagOptions,
): Promise<NewerTags> {
  // A pod whose credentials could read the image.
  const lacking = new Map<string, JudgedPod>();
  for (const pod of pods)
    for (const { cause, image } of pod.blockers)
      if ((cause === 'image' || cause === 'broken') && image !== undefined) lacking.set(image, pod);
  const images = imageRows(pods)
    .flatMap(({ image }) => {
      const user = lacking.get(image);
      return user === undefined ? [] : [{ image, user }];
    })
    .slice(0, maxImages);
  const search = new Search(options);
  if (lacking.size > images.length)
    search.warn(`only the ${maxImages} images with the highest CPU requests were looked up`);
  const byImage = new Map<string, string>();
  let done = 0;
  await concurrently(images, concurrentImages, async ({ image, user }) => {
    const newer = await search.find(image, user);
    if (newer !== undefined) byImage.set(image, newer);
    done += 1;
    options.onProgress(done, images.length);
  });
  return { byImage, problems: [...search.problems].toSorted(byName) };
}

class Search {
  readonly problems = new Set<string>();
  readonly #options: NewerTagOptions;

  constructor(options: NewerTagOptions) {
    this.#options = options;
  }

  warn(problem: string): void {
    if (!this.problems.has(problem)) this.#options.onProblem(problem);
    this.problems.add(problem);
  }

  async find(image: string, user: JudgedPod): Promise<string | undefined> {
    const signal = AbortSignal.any([this.#options.stop, AbortSignal.timeout(imageLimitMs)]);
    try {
      return await this.#newerOf(image, user, signal);
    } catch (error) {
      if (error instanceof InvalidReference) return undefined;
      if (!(error instanceof RegistryError || error instanceof CredentialError) && !signal.aborted)
        throw error;
      const reason = error instanceof Error ? error.message : 'no answer in time';
      this.warn(reason);
      return undefined;
    }
  }

  async #newerOf(image: string, user: JudgedPod, signal: AbortSignal): Promise<string | undefined> {
    const { architecture, inspector } = this.#options;
    const request = await this.#requestOf(image, user, signal);
    const { tag, digest, repository } = request.reference;
    if (tag === undefined || digest !== undefined) return undefined;
    const { tags, isComplete } = await this.#options.lists.tags(request, signal);
    if (!isComplete) this.warn(`${repository} has more than the ${tags.length} tags that were listed`);
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
