/**
 * Notes in a ConfigMap of our own namespace, one key each; the first note creates it. Every write is guarded
 * by the version that it was made from, so two concurrent writers lose nothing.
 */
import { ignoring, isCode } from '../../kube/api/errors.ts';
import type { ConfigMap } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { NamedObject } from '../../kube/watch/reflector.ts';
import { namedLabels } from './own-objects.ts';

export type ConfigMapOptions = Pick<NamedObject, 'client' | 'namespace' | 'name'>;

export type NotesData = Readonly<Record<string, string>>;
/** `null` removes a key. */
export type NotesChange = Readonly<Record<string, string | null>>;

/** Few writers can be under way at the same time, and each conflict means that one of them is done. */
const tries = 5;

export class ConfigMapNotes {
  readonly #options: ConfigMapOptions;

  constructor(options: ConfigMapOptions) {
    this.#options = options;
  }

  /** @throws KubeError */
  async read(signal: AbortSignal): Promise<NotesData> {
    return (await this.#get(signal))?.data ?? {};
  }

  /** Changes the notes as they are now; starts again after a conflict. @throws KubeError */
  async change<T>(
    decide: (data: NotesData) => { readonly change: NotesChange; readonly result: T },
    signal: AbortSignal,
  ): Promise<T> {
    for (let left = tries; ; left -= 1) {
      try {
        const present = await this.#get(signal);
        const { change, result } = decide(present?.data ?? {});
        await this.#write(present, change, signal);
        return result;
      } catch (error) {
        if (!isCode(error, 'conflict') || left === 1) throw error;
      }
    }
  }

  #get(signal: AbortSignal): Promise<ConfigMap | undefined> {
    const { client, namespace, name } = this.#options;
    return ignoring('not-found', client.get<ConfigMap>(paths.configMaps(namespace, name), { signal }));
  }

  async #write(present: ConfigMap | undefined, change: NotesChange, signal: AbortSignal): Promise<void> {
    const { client, namespace, name } = this.#options;
    const entries = Object.entries(change).filter(
      ([key, value]) => value !== null || key in (present?.data ?? {}),
    );
    if (entries.length === 0) return;
    const data = Object.fromEntries(entries);
    if (present !== undefined) {
      const { resourceVersion } = present.metadata ?? {};
      const body = { metadata: { resourceVersion }, data };
      await client.patch(paths.configMaps(namespace, name), { type: 'merge', body }, { signal });
      return;
    }
    const metadata = { name, namespace, labels: namedLabels };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
    await client.create(paths.configMaps(namespace), object, { signal });
  }
}
