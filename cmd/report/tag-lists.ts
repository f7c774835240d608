/**
 * The tags of repositories for `--newer-tags`. Each repository is listed once. A list that needed no
 * credentials of a pod serves all pods, and is kept for the next run. Others serve pods with the same
 * credentials, as image facts do. A failure is not kept.
 */
import { join } from 'node:path';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import { SingleFlight } from '../../src/async/single-flight.ts';
import { StateFile } from '../../src/files/state-file.ts';
import { asObject, InvalidDocument } from '../../src/http/json.ts';
import type { ImageRequest } from '../../src/images/facts/facts.ts';
import { scopedKey, scopeOf, withAccount } from '../../src/images/memory/scope.ts';
import { validReference } from '../../src/images/references/reference.ts';
import type { TagSource } from '../../src/images/sources/tag-source.ts';
import type { TagList } from '../../src/registry/manifest-lookup.ts';
import { tagsIn } from '../../src/registry/tags-at-endpoint.ts';
import type { Log } from '../../src/telemetry/log.ts';

/** As long as `check` keeps what a tag names: a tag that was pushed shows soon. */
const maxAgeMs = 3_600_000;
/** A run lists at most 50 repositories, with up to 10,000 tags each. Most tags are short. */
const maxBytes = 16 * 1_048_576;
/** Ten pages of registries that keep to the requested size. A longer list is not kept for the next run. */
const maxTags = 10_000;

export interface CachedTagList extends TagList {
  readonly repository: string;
  /** Milliseconds since the epoch. */
  readonly listedAt: number;
}

export interface TagListsOptions {
  readonly source: TagSource;
  /** Directory of the cache; `undefined`: nothing is kept. */
  readonly directory: string | undefined;
  readonly log: Log;
  readonly clock?: Clock;
}

/** Reads the lists of earlier runs. Close it at the end, which writes them. */
export async function openTagLists({
  source,
  directory,
  log,
  clock = systemClock,
}: TagListsOptions): Promise<TagLists> {
  if (directory === undefined) return new TagLists(source, clock);
  const header = { format: 'archwright tag lists', version: 1 };
  const path = join(directory, 'tag-lists.ndjson');
  const file = new StateFile({ path, header, read: readTagList, maxBytes, log, clock });
  const lists = new TagLists(source, clock, file);
  await file.load((list) => lists.learn(list));
  return lists;
}

/** @throws InvalidDocument */
export function readTagList(value: unknown): CachedTagList {
  const { repository, listedAt, isComplete, tags } = asObject(value) ?? {};
  if (typeof repository !== 'string' || validReference(repository)?.repository !== repository)
    throw new InvalidDocument('the repository is not valid');
  if (typeof listedAt !== 'number') throw new InvalidDocument('the time is not a number');
  if (typeof isComplete !== 'boolean') throw new InvalidDocument('isComplete is not a boolean');
  const known = tagsIn(tags);
  if (!Array.isArray(tags) || known.length !== tags.length || known.length > maxTags)
    throw new InvalidDocument('the tags are not valid, or too many');
  return { repository, listedAt, isComplete, tags: known };
}

export class TagLists {
  readonly #source: TagSource;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #file: StateFile<CachedTagList> | undefined;
  /** Listed anonymously or with credentials of this machine, by repository, the latest last. */
  readonly #shared = new Map<string, CachedTagList>();
  /** The others, by repository and credential scope, for this run only. */
  readonly #scoped = new Map<string, TagList>();
  readonly #running = new SingleFlight<TagList>({ abortAbandoned: true });

  constructor(source: TagSource, clock: Pick<Clock, 'now'>, file?: StateFile<CachedTagList>) {
    this.#source = source;
    this.#clock = clock;
    this.#file = file;
    file?.keep(() => [...this.#shared.values()].reverse());
  }

  /** Takes over a list of an earlier run, unless it is too old, or of a time to come. */
  learn(list: CachedTagList): void {
    const age = this.#clock.now() - list.listedAt;
    if (age >= 0 && age < maxAgeMs) this.#shared.set(list.repository, list);
  }

  /** @throws RegistryError, CredentialError, the reason of the signal */
  async tags(request: ImageRequest, signal: AbortSignal): Promise<TagList> {
    const { repository } = request.reference;
    const scope = withAccount(scopeOf(request.pullCredentials), request.serviceAccount);
    const key = scopedKey(repository, scope);
    const known = this.#shared.get(repository) ?? this.#scoped.get(key);
    return known ?? (await this.#running.run(key, (running) => this.#list(key, request, running), signal));
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #list(key: string, request: ImageRequest, signal: AbortSignal): Promise<TagList> {
    const { tags, isComplete, credentialSource } = await this.#source(request, signal);
    const isOfPod = credentialSource === 'pull-secret' || credentialSource === 'service-account';
    if (isOfPod || tags.length > maxTags) this.#scoped.set(key, { tags, isComplete });
    else {
      const { repository } = request.reference;
      this.#shared.set(repository, { repository, listedAt: this.#clock.now(), isComplete, tags });
      this.#file?.changed();
    }
    return { tags, isComplete };
  }
}
