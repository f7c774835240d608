/** `--newer-tags`: this machine looks up at most three tags of a repository for the architecture. */
import { concurrently } from '../../src/async/concurrently.ts';
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import { CredentialError } from '../../src/credentials/credential.ts';
import type { FactsCache } from '../../src/images/cache/cache.ts';
import { scopedKey, scopeOf } from '../../src/images/cache/scope.ts';
import type { ImageRequest } from '../../src/images/facts/facts.ts';
import { InvalidReference, parseReference, type Reference } from '../../src/images/references/reference.ts';
import type { TagSource } from '../../src/images/sources/registry-source.ts';
import { byName } from '../../src/names/values.ts';
import { RegistryError, type TagList } from '../../src/registry/manifest-lookup.ts';
import { createProgress } from '../program/terminal.ts';
import { openCachedLookups } from '../wiring/cached-lookups.ts';
import type { Cluster } from '../wiring/cluster.ts';
import type { ReportCall } from './flags.ts';
import type { MadePod } from './pods.ts';
import { imageRows, type JudgedPod } from './rows.ts';

/** Each costs a list and up to three lookups, which count against rate limits. */
const maxImages = 50;
const concurrentImages = 4;
const imageLimitMs = 20_000;
/** Credentials may pull an image, but not list its tags. After so many refusals, more would follow. */
const maxRefused = 3;
const refusals: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'not-found']);

interface Judged {
  readonly pods: readonly JudgedPod[];
  readonly architecture: string;
  readonly pullSecrets: PullSecrets;
}

export interface NewerTags {
  /** The same image with a newer tag that has the architecture, by image as written in the pods. */
  readonly byImage: ReadonlyMap<string, string>;
  /** Why some tags were not looked up. */
  readonly problems: readonly string[];
}

/** Endpoints and credentials are those of `inspect`, and image facts are cached as by `check`. */
export async function findNewerTags(
  invocation: Pick<ReportCall, 'flags' | 'io' | 'say' | 'stop'>,
  { context }: Pick<Cluster, 'context'>,
  { pods, architecture, pullSecrets }: Judged,
): Promise<NewerTags> {
  const { io, say, stop } = invocation;
  await using opened = new AsyncDisposableStack();
  const lookups = await openCachedLookups(invocation, context, opened);
  const progress = createProgress(io);
  opened.defer(() => progress.end());
  const search = new Search({ ...lookups, architecture, pullSecrets, stop, say });
  const { images, isComplete } = candidates(pods);
  if (!isComplete)
    search.warn(
      `only ${maxImages} images were looked up, those with the highest CPU requests of each namespace`,
    );
  const byImage = new Map<string, string>();
  let done = 0;
  await concurrently(images, concurrentImages, async ({ image, users }) => {
    const newer = await search.find(image, users);
    if (newer !== undefined) byImage.set(image, newer);
    done += 1;
    progress.show(`newer tags of ${done} of ${images.length} images`);
  });
  return { byImage, problems: [...search.problems].toSorted(byName) };
}

/** Images that lack the architecture, with the pods whose credentials could read them. */
function candidates(pods: readonly JudgedPod[]) {
  const lacking = new Map<string, Set<MadePod>>();
  for (const { pod, blockers } of pods)
    for (const { cause, image } of blockers)
      if ((cause === 'image' || cause === 'broken') && image !== undefined)
        lacking.set(image, (lacking.get(image) ?? new Set()).add(pod.made));
  const turns = new Map<string, number>();
  const images = imageRows(pods)
    .flatMap(({ image }) => {
      const users = lacking.get(image);
      if (users === undefined) return [];
      const namespaces = new Set([...users].map(({ wanted }) => wanted.namespace));
      const turn = Math.min(...[...namespaces].map((name) => turns.get(name) ?? 0));
      for (const name of namespaces) turns.set(name, (turns.get(name) ?? 0) + 1);
      return [{ image, users, turn }];
    })
    // Namespaces take turns: pods can request any amount.
    .toSorted((a, b) => a.turn - b.turn)
    .slice(0, maxImages);
  return { images, isComplete: images.length === lacking.size };
}

interface SearchOptions extends Omit<Judged, 'pods'>, Pick<ReportCall, 'say' | 'stop'> {
  readonly cache: Pick<FactsCache, 'get'>;
  readonly tags: TagSource;
}

class Search {
  readonly problems = new Set<string>();
  readonly #options: SearchOptions;
  /** Each repository is listed once with the same credentials. */
  readonly #lists = new Map<string, Promise<TagList>>();

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  warn(problem: string): void {
    this.#options.say(`newer tags: ${problem}`, 'warning');
    this.problems.add(problem);
  }

  async find(image: string, users: Iterable<MadePod>): Promise<string | undefined> {
    const signal = AbortSignal.any([this.#options.stop, AbortSignal.timeout(imageLimitMs)]);
    try {
      return await this.#newerOf(image, users, signal);
    } catch (error) {
      if (error instanceof InvalidReference) return undefined;
      if (!(error instanceof RegistryError || error instanceof CredentialError) && !signal.aborted)
        throw error;
      const reason = error instanceof Error ? error.message : 'no answer in time';
      this.warn(reason);
      return undefined;
    }
  }

  async #newerOf(image: string, users: Iterable<MadePod>, signal: AbortSignal): Promise<string | undefined> {
    const { architecture, cache } = this.#options;
    const reference = parseReference(image);
    const { tag, digest, repository } = reference;
    if (tag === undefined || digest !== undefined) return undefined;
    const listed = await this.#list({ image, reference }, users, signal);
    if (listed === undefined) return undefined;
    const { list, request, os } = listed;
    if (!list.isComplete)
      this.warn(`${repository} has more than the ${list.tags.length} tags that were listed`);
    for (const newer of newerTags(tag, list.tags)) {
      const name = `${image.slice(0, -tag.length)}${newer}`;
      const facts = await cache.get({ ...request, image: name, reference: parseReference(name) }, { signal });
      if (facts.platforms.some((each) => each.os === os && each.architecture === architecture)) return name;
    }
    return undefined;
  }

  /** The tags, with the first credentials of a pod that may list them. Warns if none may. */
  async #list(
    of: { readonly image: string; readonly reference: Reference },
    users: Iterable<MadePod>,
    signal: AbortSignal,
  ): Promise<{ list: TagList; request: ImageRequest; os: string } | undefined> {
    /** Messages by credential scope. */
    const refused = new Map<string, string>();
    for (const { os, wanted } of users) {
      const request = await this.#requestOf(of, wanted, signal);
      const scope = scopeOf({ pullCredentials: request.pullCredentials });
      if (refused.has(scope)) continue;
      try {
        return { list: await this.#listOnce(request), request, os };
      } catch (error) {
        if (!(error instanceof RegistryError && refusals.has(error.code))) throw error;
        refused.set(scope, error.message);
      }
      if (refused.size === maxRefused) break;
    }
    this.warn([...new Set(refused.values())].join('; '));
    return undefined;
  }

  #listOnce(request: ImageRequest): Promise<TagList> {
    const { tags, stop } = this.#options;
    const key = scopedKey(request.reference.repository, scopeOf(request));
    const known = this.#lists.get(key);
    if (known) return known;
    const list = tags(request, AbortSignal.any([stop, AbortSignal.timeout(imageLimitMs)]));
    this.#lists.set(key, list);
    return list;
  }

  async #requestOf(
    { image, reference }: { readonly image: string; readonly reference: Reference },
    { namespace, pullSecrets, serviceAccount }: MadePod['wanted'],
    signal: AbortSignal,
  ): Promise<ImageRequest> {
    const source = await this.#options.pullSecrets.source(namespace, pullSecrets, signal);
    const pullCredentials = await source.lookup(reference.repository);
    const request = { image, reference, maxAgeMs: Number.POSITIVE_INFINITY, pullCredentials, namespace };
    return serviceAccount === undefined ? request : { ...request, serviceAccount };
  }
}

interface Version {
  readonly numbers: readonly number[];
  /** Must be equal: prefix, which numbers are dates, and the rest without its versions: `v#.# -alpine#`. */
  readonly variant: string;
}

const form = /^(v?)(\d{1,9}(?:\.\d{1,9}){0,3})((?:[-_.][A-Za-z][\w.-]{0,60})?)$/;
/** `2024`, `202409`, `20240923`: higher than any version, and no newer one. */
const date = /^20\d\d(?:[01]\d(?:[0-3]\d)?)?$/;
const prerelease = /[-_.](?:alpha|beta|rc|pre|preview|dev|snapshot|nightly|canary|test)(?![a-z])/i;

/** Each costs a lookup. */
const maxTags = 3;

/**
 * Tags to look at for a newer one, the smallest step first: the newest with the same minor version, the
 * newest with the same major version, and the newest. If these are the same, the next newest ones follow: the
 * newest may lack what an older one has. Pre-releases count as no version.
 * @see https://semver.org
 */
export function newerTags(tag: string, tags: readonly string[]): readonly string[] {
  const own = versionOf(tag);
  if (own === undefined) return [];
  const newer = tags
    .flatMap((name) => {
      const version = versionOf(name);
      return version?.variant === own.variant && compare(version, own) > 0 ? [{ name, version }] : [];
    })
    .toSorted((a, b) => compare(b.version, a.version) || (a.name < b.name ? 1 : -1));
  const newestWith = (same: number): string | undefined =>
    newer.find(({ version }) =>
      version.numbers.slice(0, same).every((each, index) => each === own.numbers[index]),
    )?.name;
  const found = [newestWith(2), newestWith(1), newestWith(0)].filter((name) => name !== undefined);
  return [...new Set([...found, ...newer.map(({ name }) => name)])].slice(0, maxTags);
}

function versionOf(tag: string): Version | undefined {
  const [, prefix, numbers, rest] = form.exec(tag) ?? [];
  if (numbers === undefined || rest === undefined || prerelease.test(rest)) return undefined;
  const parts = numbers.split('.');
  const kinds = parts.map((part) => (date.test(part) ? 'date' : '#')).join('.');
  const variant = `${prefix}${kinds} ${rest.replaceAll(/\d+(?:\.\d+)*/g, '#')}`;
  return { numbers: parts.map(Number), variant };
}

function compare(a: Version, b: Version): number {
  const index = a.numbers.findIndex((each, at) => each !== b.numbers[at]);
  return index < 0 ? 0 : (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0);
}
