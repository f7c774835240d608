/** The notes on drifted tags in their ConfigMap, for the next leader, the webhook and `archwright report`. */
import { isDeepStrictEqual } from 'node:util';
import {
  formatDrifted,
  keyOfDrifted,
  maxDriftedBytes,
  maxDriftedTags,
  parseDrifted,
  type DriftedTag,
} from '../../../images/sources/drifted-tags.ts';
import { ConfigMapNotes, type ConfigMapOptions, type NotesChange } from '../../write/config-map-notes.ts';
import { fairShare } from './tags.ts';

export interface NotedTag {
  readonly drifted: DriftedTag;
  readonly namespaces: readonly string[];
}

export class DriftNotes {
  readonly #notes: ConfigMapNotes;
  /** Content of the ConfigMap; `undefined`: not read yet. */
  #written: ReadonlyMap<string, string> | undefined;

  constructor(options: ConfigMapOptions) {
    this.#notes = new ConfigMapNotes(options);
  }

  /** @throws KubeError */
  async read(signal: AbortSignal): Promise<readonly DriftedTag[]> {
    const data = await this.#notes.read(signal);
    this.#written = new Map(Object.entries(data));
    return parseDrifted(data);
  }

  /** Replaces the notes, if they differ. @throws KubeError */
  async write(tags: readonly NotedTag[], signal: AbortSignal): Promise<void> {
    const wanted = notesOf(tags);
    if (isDeepStrictEqual(this.#written, wanted)) return;
    this.#written = undefined;
    await this.#notes.change((data) => {
      const gone: NotesChange = Object.fromEntries(Object.keys(data).map((key) => [key, null]));
      return { change: { ...gone, ...Object.fromEntries(wanted) }, result: undefined };
    }, signal);
    this.#written = wanted;
  }
}

/** As many as there is room for: lost architectures first, then in turn from each namespace. */
function notesOf(tags: readonly NotedTag[]): ReadonlyMap<string, string> {
  const items = tags.map(({ drifted, namespaces }) => ({ key: drifted.image, namespaces, item: drifted }));
  const [losing = [], gaining = []] = [true, false].map((isLosing) =>
    items.filter(({ item }) => item.lost.length > 0 === isLosing),
  );
  const chosen = fairShare(losing, maxDriftedTags);
  const wanted = new Map<string, string>();
  let bytes = 0;
  for (const tag of [...chosen, ...fairShare(gaining, maxDriftedTags - chosen.length)]) {
    const [key, value] = [keyOfDrifted(tag.image), formatDrifted(tag)];
    bytes += key.length + Buffer.byteLength(value);
    if (bytes > maxDriftedBytes) break;
    wanted.set(key, value);
  }
  return wanted;
}
