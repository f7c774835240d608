/**
 * The room for notes, shared by namespaces. Anyone who runs a pod can cause notes, but only for their own
 * namespace. Without room, the oldest note of the namespace with the most notes leaves first.
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
import type { NotesChange, NotesData } from '../config-map-notes.ts';

/** One namespace's share of 1,000. A namespace with more broken images at a time has another problem. */
export const maxNotesOfNamespace = 50;

export class NoteShares {
  readonly #notes: Map<string, BrokenImage>;
  readonly #before: NotesData;
  /** Keys that changed. */
  readonly #changed = new Set<string>();
  /** Notes by namespace. */
  readonly #counts = new Map<string, number>();
  #bytes = 0;

  constructor(data: NotesData) {
    this.#before = data;
    this.#notes = new Map(
      parseBroken(data).map((note) => [keyOfBroken(note.digest, note.architecture, note.level) ?? '', note]),
    );
    for (const key of this.#notes.keys()) this.#count(key, 1);
  }

  note(key: string): BrokenImage | undefined {
    return this.#notes.get(key);
  }

  put(key: string, note: BrokenImage): void {
    this.#count(key, -1);
    this.#notes.set(key, note);
    this.#count(key, 1);
    this.#changed.add(key);
  }

  /**
   * Makes room for a note that was put for a namespace.
   * @returns false: there is none, and no other namespace has more notes
   */
  makeRoom(key: string, namespace: string): boolean {
    while ((this.#counts.get(namespace) ?? 0) > maxNotesOfNamespace) this.#forgetOldest(namespace);
    const inNote = this.note(key)?.namespaces ?? [];
    if (inNote.length > maxNamespaces) {
      const largest = this.#largest(inNote, namespace);
      if (largest === undefined) return false;
      this.#forget(key, largest);
    }
    while (this.#notes.size > maxBrokenImages || this.#bytes > maxBrokenBytes) {
      const largest = this.#largest(this.#counts.keys(), namespace);
      if (largest === undefined) return false;
      this.#forgetOldest(largest);
    }
    return true;
  }

  change(): NotesChange {
    const entries = [...this.#changed].map((key) => {
      const note = this.#notes.get(key);
      return [key, note ? formatBroken(note) : null] as const;
    });
    return Object.fromEntries(entries.filter(([key, value]) => value !== null || key in this.#before));
  }

  /** The namespace with the most notes, if it has more than this one. */
  #largest(namespaces: Iterable<string>, than: string): string | undefined {
    let largest: string | undefined;
    let most = this.#counts.get(than) ?? 0;
    for (const name of namespaces) {
      const count = this.#counts.get(name) ?? 0;
      if (count > most) [largest, most] = [name, count];
    }
    return largest;
  }

  #of(namespace: string): readonly (readonly [key: string, note: BrokenImage])[] {
    return [...this.#notes].filter(([, { namespaces }]) => namespaces.includes(namespace));
  }

  #forgetOldest(namespace: string): void {
    const [oldest] = this.#of(namespace).toSorted(([, a], [, b]) => a.until - b.until);
    if (oldest) this.#forget(oldest[0], namespace);
  }

  /** The note no longer holds for the namespace; without any it is removed. */
  #forget(key: string, namespace: string): void {
    const note = this.#notes.get(key);
    if (!note) return;
    const namespaces = note.namespaces.filter((name) => name !== namespace);
    if (namespaces.length > 0) return this.put(key, { ...note, namespaces });
    this.#count(key, -1);
    this.#notes.delete(key);
    this.#changed.add(key);
  }

  #count(key: string, sign: 1 | -1): void {
    const note = this.#notes.get(key);
    if (!note) return;
    this.#bytes += sign * bytesOf(key, formatBroken(note));
    for (const name of note.namespaces) this.#counts.set(name, (this.#counts.get(name) ?? 0) + sign);
  }
}

function bytesOf(key: string, value: string): number {
  return key.length + Buffer.byteLength(value);
}
