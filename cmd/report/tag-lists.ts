/**
 * The tags of repositories for `--newer-tags`. Each repository is listed once, and its list is kept for the
 * next run. The list tells which tags to look up: each is looked up with the credentials of the pod, so that
 * a list of an earlier run reveals nothing.
 */
import { join } from 'node:path';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import { StateFile } from '../../src/files/state-file.ts';
import { asObject, InvalidDocument } from '../../src/http/json.ts';
import { validReference } from '../../src/images/references/reference.ts';
import type { TagSource } from '../../src/images/sources/tag-source.ts';
import type { TagList } from '../../src/registry/manifest-lookup.ts';
import { tagsIn } from '../../src/registry/tags-at-endpoint.ts';
import type { Log } from '../../src/telemetry/log.ts';

/** As long as `check` keeps what a tag names: a tag that was pushed shows soon. */
const maxAgeMs = 3_600_000;
/** Of each run at most 50 repositories, with up to 10,000 tags each, of which most are short. */
const maxBytes = 16 * 1_048_576;
/** Pages of registries that keep to the size that is asked for. A longer list is not kept. */
const maxTags = 10_000;

export interface CachedTagList extends TagList {
  readonly repository: string;
  /** Milliseconds since the epoch. */
  readonly listedAt: number;
}

export interface TagListsOptions {
  readonly source: TagSource;
  /** Of the cache; `undefined`: nothing is kept. */
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
  /** By repository, the latest last. */
  readonly #known = new Map<string, CachedTagList>();
  readonly #asked = new Map<string, Promise<TagList>>();

  constructor(source: TagSource, clock: Pick<Clock, 'now'>, file?: StateFile<CachedTagList>) {
    this.#source = source;
    this.#clock = clock;
    this.#file = file;
    file?.keep(() => [...this.#known.values()].reverse());
  }

  /** Takes over a list of an earlier run, unless it is too old, or of a time to come. */
  learn(list: CachedTagList): void {
    const age = this.#clock.now() - list.listedAt;
    if (age >= 0 && age < maxAgeMs) this.#known.set(list.repository, list);
  }

  /** @throws RegistryError, CredentialError */
  tags: TagSource = (request, signal) => {
    const { repository } = request.reference;
    const known = this.#known.get(repository);
    if (known) return Promise.resolve(known);
    const asked = this.#asked.get(repository) ?? this.#ask(repository, request, signal);
    this.#asked.set(repository, asked);
    return asked;
  };

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #ask(repository: string, ...request: Parameters<TagSource>): Promise<TagList> {
    const list = await this.#source(...request);
    if (list.tags.length > maxTags) return list;
    const { isComplete, tags } = list;
    this.#known.set(repository, { repository, listedAt: this.#clock.now(), isComplete, tags });
    this.#file?.changed();
    return list;
  }
}
