/**
 * The tags of repositories for `--newer-tags`. A run lists each repository once. A list that needed no
 * credentials of a pod serves all pods. Others serve pods with the same credentials, as image facts do. A
 * failure is not kept.
 */
import { SingleFlight } from '../../src/async/single-flight.ts';
import type { ImageRequest } from '../../src/images/facts/facts.ts';
import { scopedKey, scopeOf } from '../../src/images/cache/scope.ts';
import type { TagSource } from '../../src/images/sources/tag-source.ts';
import type { TagList } from '../../src/registry/manifest-lookup.ts';

export class TagLists {
  readonly #source: TagSource;
  /** Listed anonymously or with credentials of this machine, by repository. */
  readonly #shared = new Map<string, TagList>();
  /** The others, by repository and credential scope. */
  readonly #scoped = new Map<string, TagList>();
  readonly #running = new SingleFlight<TagList>({ abortAbandoned: true });

  constructor(source: TagSource) {
    this.#source = source;
  }

  /** @throws RegistryError, CredentialError, the reason of the signal */
  async tags(request: ImageRequest, signal: AbortSignal): Promise<TagList> {
    const { repository } = request.reference;
    const key = scopedKey(repository, scopeOf(request));
    const known = this.#shared.get(repository) ?? this.#scoped.get(key);
    return known ?? (await this.#running.run(key, (running) => this.#list(key, request, running), signal));
  }

  async #list(key: string, request: ImageRequest, signal: AbortSignal): Promise<TagList> {
    const { credentialSource, ...list } = await this.#source(request, signal);
    const isOfPod = credentialSource === 'pull-secret' || credentialSource === 'service-account';
    if (isOfPod) this.#scoped.set(key, list);
    else this.#shared.set(request.reference.repository, list);
    return list;
  }
}
