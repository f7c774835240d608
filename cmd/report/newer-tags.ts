/** `--newer-tags`: this machine looks up at most three tags of a repository for the architecture. */
import { concurrently } from '../../src/async/concurrently.ts';
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import { CredentialError } from '../../src/credentials/credential.ts';
import { scopedKey, scopeOf } from '../../src/images/cache/entry.ts';
import { parseReference, validReference } from '../../src/images/references/reference.ts';
import { byName } from '../../src/names/values.ts';
import { RegistryError, type TagList } from '../../src/registry/manifest-lookup.ts';
import { createProgress } from '../program/terminal.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openCachedLookups, type cacheFlags } from '../wiring/image-facts.ts';
import type { Cluster } from '../wiring/cluster.ts';
import type { MadePod } from './pods.ts';
import { imageRows } from './rows.ts';
import type { JudgedPod } from './verdict.ts';

/** Each costs a list and up to three lookups, which count against rate limits. */
const maxImages = 50;
const concurrentImages = 4;
const imageLimitMs = 20_000;
/** Credentials may pull an image, but not list its tags. After so many refusals, more would follow. */
const maxRefused = 3;
const refusals: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'not-found']);

export interface NewerTags {
  /** The same image with a newer tag that has the architecture, by image as written in the pods. */
  readonly byImage: ReadonlyMap<string, string>;
  /** Why some tags were not looked up. */
  readonly problems: readonly string[];
}

type Candidate = ReturnType<typeof candidates>['images'][number];

/** Endpoints and credentials are those of `inspect`, and image facts are cached as by `check`. */
export async function findNewerTags(
  invocation: Pick<Invocation<typeof cacheFlags>, 'flags' | 'io' | 'say' | 'stop'>,
  { context }: Pick<Cluster, 'context'>,
  architecture: string,
  { pods, pullSecrets }: { readonly pods: readonly JudgedPod[]; readonly pullSecrets: PullSecrets },
): Promise<NewerTags> {
  const { io, say, stop } = invocation;
  await using opened = new AsyncDisposableStack();
  const { cache, tags } = await openCachedLookups(invocation, context, opened);
  const progress = createProgress(io);
  opened.defer(() => progress.end());
  const problems = new Set<string>();
  const warn = (problem: string): void => {
    say(`newer tags: ${problem}`, 'warning');
    problems.add(problem);
  };
  const limit = (): AbortSignal => AbortSignal.any([stop, AbortSignal.timeout(imageLimitMs)]);
  /** Each repository is listed once with the same credentials. */
  const lists = new Map<string, Promise<TagList>>();

  /** The tags, with the first credentials of a pod that may list them. Warns if none may. */
  async function listOf({ image, reference, users }: Candidate, signal: AbortSignal) {
    /** Messages by credential scope. */
    const refused = new Map<string, string>();
    for (const { os, wanted } of users) {
      const { namespace, pullSecrets: named, serviceAccount } = wanted;
      const source = await pullSecrets.source(namespace, named, signal);
      const pullCredentials = await source.lookup(reference.repository);
      const ofPod = { pullCredentials, namespace, ...(serviceAccount !== undefined && { serviceAccount }) };
      const request = { image, reference, maxAgeMs: Number.POSITIVE_INFINITY, ...ofPod };
      const scope = scopeOf({ pullCredentials });
      if (refused.has(scope)) continue;
      const key = scopedKey(reference.repository, scopeOf(request));
      const list = lists.get(key) ?? tags(request, limit());
      lists.set(key, list);
      try {
        return { list: await list, request, os };
      } catch (error) {
        if (!(error instanceof RegistryError && refusals.has(error.code))) throw error;
        refused.set(scope, error.message);
      }
      if (refused.size === maxRefused) break;
    }
    warn([...new Set(refused.values())].join('; '));
    return undefined;
  }

  async function find(candidate: Candidate, signal: AbortSignal): Promise<string | undefined> {
    const { image, tag, reference } = candidate;
    const listed = await listOf(candidate, signal);
    if (listed === undefined) return undefined;
    const { list, request, os } = listed;
    if (!list.isComplete)
      warn(`${reference.repository} has more than the ${list.tags.length} tags that were listed`);
    for (const newer of newerTags(tag, list.tags)) {
      const name = `${image.slice(0, -tag.length)}${newer}`;
      const facts = await cache.get({ ...request, image: name, reference: parseReference(name) }, { signal });
      if (facts.platforms.some((each) => each.os === os && each.architecture === architecture)) return name;
    }
    return undefined;
  }

  const { images, isComplete } = candidates(pods);
  if (!isComplete)
    warn(`only ${maxImages} images were looked up, those with the highest CPU requests of each namespace`);
  const byImage = new Map<string, string>();
  let done = 0;
  await concurrently(images, concurrentImages, async (candidate) => {
    const signal = limit();
    try {
      const newer = await find(candidate, signal);
      if (newer !== undefined) byImage.set(candidate.image, newer);
    } catch (error) {
      const isFailure = error instanceof RegistryError || error instanceof CredentialError;
      if (!isFailure && !signal.aborted) throw error;
      warn(error instanceof Error ? error.message : 'no answer in time');
    }
    done += 1;
    progress.show(`newer tags of ${done} of ${images.length} images`);
  });
  return { byImage, problems: [...problems].toSorted(byName) };
}

/** Images that lack the architecture, each with the pods whose credentials could read it. */
function candidates(pods: readonly JudgedPod[]) {
  const lacking = new Map<string, Set<MadePod>>();
  for (const { pod, blockers } of pods)
    for (const { cause, image } of blockers)
      if ((cause === 'image' || cause === 'broken') && image !== undefined)
        lacking.set(image, (lacking.get(image) ?? new Set()).add(pod.made));
  const turns = new Map<string, number>();
  const all = imageRows(pods).flatMap(({ image }) => {
    const users = lacking.get(image);
    const reference = users && validReference(image);
    const { tag, digest } = reference ?? {};
    if (users === undefined || reference === undefined || tag === undefined || digest !== undefined)
      return [];
    const namespaces = new Set([...users].map(({ wanted }) => wanted.namespace));
    const turn = Math.min(...[...namespaces].map((name) => turns.get(name) ?? 0));
    for (const name of namespaces) turns.set(name, (turns.get(name) ?? 0) + 1);
    return [{ image, tag, reference, users, turn }];
  });
  // Namespaces take turns: pods can request any amount.
  const images = all.toSorted((a, b) => a.turn - b.turn).slice(0, maxImages);
  return { images, isComplete: images.length === all.length };
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
