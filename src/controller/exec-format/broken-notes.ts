/** Writes the notes on broken images (`images/sources/broken-images.ts`) to their ConfigMap. */
import { keyOfBroken, parseBroken, type BrokenImage } from '../../images/sources/broken-images.ts';
import {
  ConfigMapNotes,
  type ConfigMapOptions,
  type NotesChange,
  type NotesData,
} from '../config-map-notes.ts';
import { NoteShares } from './note-shares.ts';

/** `full`: not noted, because there is no room, and no other namespace has more notes. */
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

  /** Removes expired notes and keys that are no note. @returns the notes that are left. @throws KubeError */
  prune(now: number, signal: AbortSignal): Promise<readonly BrokenImage[]> {
    return this.#notes.change((data) => {
      const alive = parseBroken(data).filter(({ until }) => until > now);
      const kept = new Set(
        alive.map(({ digest, architecture, level }) => keyOfBroken(digest, architecture, level)),
      );
      const stale = Object.keys(data).filter((key) => !kept.has(key));
      return { change: Object.fromEntries(stale.map((key) => [key, null])), result: alive };
    }, signal);
  }
}

function addition(
  data: NotesData,
  { namespace, ...seen }: SeenBroken,
): { readonly change: NotesChange; readonly result: Noted } {
  const key = keyOfBroken(seen.digest, seen.architecture, seen.level);
  if (key === undefined) return { change: {}, result: 'full' };
  const shares = new NoteShares(data);
  const known = shares.note(key);
  const isKnown = known?.namespaces.includes(namespace) === true;
  if (isKnown && seen.until - known.until < refreshAfterMs) return { change: {}, result: 'known' };
  const namespaces = [...new Set([...(known?.namespaces ?? []), namespace])].sort();
  shares.put(key, { ...seen, namespaces });
  if (!isKnown && !shares.makeRoom(key, namespace)) return { change: {}, result: 'full' };
  return { change: shares.change(), result: isKnown ? 'known' : 'new' };
}
