/** Writes the notes on broken images (`images/sources/broken-images.ts`) to their ConfigMap. */
import {
  formatBroken,
  keyOfBroken,
  maxBrokenBytes,
  maxBrokenImages,
  maxNamespaces,
  parseBroken,
  type BrokenImage,
} from '../../images/sources/broken-images.ts';
import {
  ConfigMapNotes,
  type ConfigMapOptions,
  type NotesChange,
  type NotesData,
} from '../config-map-notes.ts';

/** `full`: not noted, because there are too many notes, or too many namespaces in this one. */
export type Noted = 'new' | 'known' | 'full';

export type SeenBroken = Omit<BrokenImage, 'namespaces'> & { readonly namespace: string };

/** A note that is refreshed at each crash would cost a write for each crash. */
const refreshAfterMs = 3_600_000;

export class BrokenNotes {
  readonly #notes: ConfigMapNotes;

  constructor(options: ConfigMapOptions) {
    this.#notes = new ConfigMapNotes(options);
  }

  /** Notes that an image failed, or that it failed again. @throws KubeError */
  add(seen: SeenBroken, signal: AbortSignal): Promise<Noted> {
    return this.#notes.change((data) => addition(data, seen), signal);
  }

  /** Removes expired notes and keys that are no note. @returns how many notes are left. @throws KubeError */
  prune(now: number, signal: AbortSignal): Promise<number> {
    return this.#notes.change((data) => {
      const alive = parseBroken(data).filter(({ until }) => until > now);
      const kept = new Set(alive.map(({ digest, architecture }) => keyOfBroken(digest, architecture)));
      const stale = Object.keys(data).filter((key) => !kept.has(key));
      return { change: Object.fromEntries(stale.map((key) => [key, null])), result: alive.length };
    }, signal);
  }
}

function addition(
  data: NotesData,
  { namespace, ...seen }: SeenBroken,
): { readonly change: NotesChange; readonly result: Noted } {
  const key = keyOfBroken(seen.digest, seen.architecture);
  const notes = parseBroken(data);
  const known = notes.find(({ digest, architecture }) => keyOfBroken(digest, architecture) === key);
  const before = known?.namespaces ?? [];
  const isKnown = before.includes(namespace);
  if (known && isKnown && seen.until - known.until < refreshAfterMs) return { change: {}, result: 'known' };
  const full = { change: {}, result: 'full' as const };
  if (key === undefined || (!known && notes.length >= maxBrokenImages)) return full;
  if (!isKnown && before.length >= maxNamespaces) return full;
  const namespaces = [...new Set([...before, namespace])].sort();
  const change = { [key]: formatBroken({ ...seen, namespaces }) };
  if (!isKnown && bytesOf({ ...data, ...change }) > maxBrokenBytes) return full;
  return { change, result: isKnown ? 'known' : 'new' };
}

function bytesOf(data: NotesData): number {
  return Object.entries(data).reduce((sum, [key, value]) => sum + key.length + Buffer.byteLength(value), 0);
}
