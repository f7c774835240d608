/**
 * Writing the notes on broken images: one key of the ConfigMap each, and each write is made from the ConfigMap as it is, so
 * that none loses another's: the pods of one image in several namespaces fail at the same time.
 */
import {
  formatBroken,
  keyOfBroken,
  maxBrokenBytes,
  maxBrokenImages,
  maxNamespaces,
  parseBroken,
  type BrokenImage,
} from '../../images/sources/broken-images.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { ownLabels } from '../own-objects.ts';
import { paths } from '../../kube/api/paths.ts';

/** `known` since before; `full`: it is not noted, because there are too many notes, or too many namespaces in this one. */
export type Noted = 'news' | 'known' | 'full';

export interface Notes {
  /**
   * Notes that an image was seen to fail, or that it was seen again.
   * @throws KubeError
   */
  add(
    seen: Omit<BrokenImage, 'namespaces'> & { readonly namespace: string },
    signal: AbortSignal,
  ): Promise<Noted>;
  /**
   * Takes out what has expired and what is no note.
   * @returns how many are left
   * @throws KubeError
   */
  prune(now: number, signal: AbortSignal): Promise<number>;
}

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** A note that is refreshed with each crash would be a write for each crash. */
const refreshAfterMs = 3_600_000;
/** Each time somebody else's write was carried out, of the few that can be under way. */
const tries = 5;

/** Makes the writer for one ConfigMap, which is created when there is a first note. */
export function createNotes(options: {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
}): Notes {
  const { client, namespace, name } = options;
  const path = paths.configMaps(namespace, name);

  async function read(signal: AbortSignal): Promise<ConfigMap | undefined> {
    try {
      return await client.get<ConfigMap>(path, { signal });
    } catch (error) {
      if (error instanceof KubeError && error.code === 'not-found') return undefined;
      throw error;
    }
  }

  /** `null` takes a key out. */
  async function write(
    present: ConfigMap | undefined,
    data: Readonly<Record<string, string | null>>,
    signal: AbortSignal,
  ): Promise<void> {
    if (present !== undefined) {
      const { resourceVersion } = present.metadata ?? {};
      await client.patch(path, { type: 'merge', body: { metadata: { resourceVersion }, data } }, { signal });
      return;
    }
    const labels = { 'app.kubernetes.io/name': 'archwright', ...ownLabels };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, labels }, data };
    await client.create(paths.configMaps(namespace), object, { signal });
  }

  /** Begins anew where somebody was faster. */
  async function again<T>(change: () => Promise<T>): Promise<T> {
    for (let left = tries; ; left -= 1) {
      try {
        return await change();
      } catch (error) {
        if (!(error instanceof KubeError) || error.code !== 'conflict' || left === 1) throw error;
      }
    }
  }

  async function add(
    { namespace: seenIn, ...seen }: Parameters<Notes['add']>[0],
    signal: AbortSignal,
  ): Promise<Noted> {
    const key = keyOfBroken(seen.digest, seen.architecture);
    if (key === undefined) return 'full';
    const present = await read(signal);
    const notes = parseBroken(present?.data);
    const known = notes.find(({ digest, architecture }) => keyOfBroken(digest, architecture) === key);
    if (known === undefined && notes.length >= maxBrokenImages) return 'full';
    const isKnown = known?.namespaces.includes(seenIn) ?? false;
    if (known && isKnown && seen.until - known.until < refreshAfterMs) return 'known';
    if (known && !isKnown && known.namespaces.length >= maxNamespaces) return 'full';
    const namespaces = [...new Set([...(known?.namespaces ?? []), seenIn])].sort();
    const note = { [key]: formatBroken({ ...seen, namespaces }) };
    if (!isKnown && bytesOf({ ...present?.data, ...note }) > maxBrokenBytes) return 'full';
    await write(present, note, signal);
    return isKnown ? 'known' : 'news';
  }

  async function prune(now: number, signal: AbortSignal): Promise<number> {
    const present = await read(signal);
    if (present === undefined) return 0;
    const alive = parseBroken(present.data).filter(({ until }) => until > now);
    const kept = new Set(alive.map(({ digest, architecture }) => keyOfBroken(digest, architecture)));
    const stale = Object.keys(present.data ?? {}).filter((key) => !kept.has(key));
    if (stale.length > 0) await write(present, Object.fromEntries(stale.map((key) => [key, null])), signal);
    return alive.length;
  }

  return {
    add: (seen, signal) => again(() => add(seen, signal)),
    prune: (now, signal) => again(() => prune(now, signal)),
  };
}

function bytesOf(data: Readonly<Record<string, string>>): number {
  return Object.entries(data).reduce((sum, [key, value]) => sum + key.length + Buffer.byteLength(value), 0);
}
