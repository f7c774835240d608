/** Writes the notes on broken images (`images/sources/broken-images.ts`) to their ConfigMap. */
import {
  formatBroken,
  keyOfBroken,
  maxBrokenBytes,
  maxBrokenImages,
  maxNamespaces,
  parseBroken,
  type BrokenImage,
} from '../../../images/sources/broken-images.ts';
import { changeNotes, type NotesData } from '../../write/own-data.ts';

export type BrokenObservation = Omit<BrokenImage, 'namespaces'> & { readonly namespace: string };

/** A namespace with more broken images at once has another problem. */
const maxNotesOfNamespace = 50;

/** A note that is refreshed at each crash would cost a write for each crash. */
const refreshAfterMs = 3_600_000;

type Notes = Map<string, BrokenImage>;
type Leader = Parameters<typeof changeNotes>[0];

/**
 * Notes that an image failed, or that it failed again.
 * @param name of the ConfigMap
 * @returns whether that is new for the namespace
 * @throws KubeError
 */
export function noteBroken(
  leader: Leader,
  name: string,
  { namespace, ...seen }: BrokenObservation,
): Promise<boolean> {
  return changeNotes(leader, name, (data) => {
    const key = keyOf(seen);
    const notes = notesIn(data);
    const known = notes.get(key);
    const isKnown = known?.namespaces.includes(namespace) === true;
    // No architecture of Go has a name that is no key.
    if (key === '' || (isKnown && seen.until - known.until < refreshAfterMs)) return [data, false];
    const others = known?.namespaces.filter((each) => each !== namespace) ?? [];
    notes.set(key, { ...seen, namespaces: [...others, namespace].slice(-maxNamespaces) });
    forgetOldest(notes, namespace);
    return [dataOf(notes), !isKnown];
  });
}

/** Removes expired notes and keys that are no note. @returns the notes that are left. @throws KubeError */
export function pruneBroken(leader: Leader, name: string, now: number): Promise<readonly BrokenImage[]> {
  return changeNotes(leader, name, (data) => {
    const alive = [...notesIn(data)].filter(([, { until }]) => until > now);
    return [dataOf(alive), alive.map(([, note]) => note)];
  });
}

/** @returns empty: it has no key */
function keyOf({ digest, architecture, level }: Omit<BrokenImage, 'namespaces'>): string {
  return keyOfBroken(digest, architecture, level) ?? '';
}

function notesIn(data: NotesData): Notes {
  return new Map(parseBroken(data).map((note) => [keyOf(note), note]));
}

function dataOf(notes: Iterable<readonly [string, BrokenImage]>): NotesData {
  return Object.fromEntries([...notes].map(([key, note]) => [key, formatBroken(note)]));
}

/** Anyone who runs a pod can cause notes, but only a limited number, and only for their own namespace. */
function forgetOldest(notes: Notes, namespace: string): void {
  const own = oldestFirst(notes).filter(([, { namespaces }]) => namespaces.includes(namespace));
  for (const [key, note] of own.slice(0, -maxNotesOfNamespace)) {
    const namespaces = note.namespaces.filter((name) => name !== namespace);
    if (namespaces.length > 0) notes.set(key, { ...note, namespaces });
    else notes.delete(key);
  }
  const sizeOf = (key: string, note: BrokenImage): number =>
    key.length + Buffer.byteLength(formatBroken(note));
  let bytes = [...notes].reduce((sum, [key, note]) => sum + sizeOf(key, note), 0);
  for (const [key, note] of oldestFirst(notes)) {
    if (notes.size <= maxBrokenImages && bytes <= maxBrokenBytes) return;
    notes.delete(key);
    bytes -= sizeOf(key, note);
  }
}

function oldestFirst(notes: Notes): readonly (readonly [string, BrokenImage])[] {
  return [...notes].toSorted(([, a], [, b]) => a.until - b.until);
}
