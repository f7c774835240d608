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
import {
  ConfigMapNotes,
  type ConfigMapOptions,
  type NotesChange,
  type NotesData,
} from '../../write/config-map-notes.ts';

export type NoteOutcome = 'new' | 'known';

export type BrokenObservation = Omit<BrokenImage, 'namespaces'> & { readonly namespace: string };

/** A namespace with more broken images at once has another problem. */
const maxNotesOfNamespace = 50;

/** A note that is refreshed at each crash would cost a write for each crash. */
const refreshAfterMs = 3_600_000;

export class BrokenNotes {
  readonly #notes: ConfigMapNotes;

  constructor(options: ConfigMapOptions) {
    this.#notes = new ConfigMapNotes(options);
  }

  /** Notes that an image failed, or that it failed again. @throws KubeError */
  add(seen: BrokenObservation, signal: AbortSignal): Promise<NoteOutcome> {
    return this.#notes.change((data) => addition(data, seen), signal);
  }

  /** Removes expired notes and keys that are no note. @returns the notes that are left. @throws KubeError */
  prune(now: number, signal: AbortSignal): Promise<readonly BrokenImage[]> {
    return this.#notes.change((data) => {
      const alive = parseBroken(data).filter(({ until }) => until > now);
      const kept = new Set(alive.map(keyOf));
      const stale = Object.keys(data).filter((key) => !kept.has(key));
      return { change: Object.fromEntries(stale.map((key) => [key, null])), result: alive };
    }, signal);
  }
}

function keyOf({ digest, architecture, level }: BrokenImage): string | undefined {
  return keyOfBroken(digest, architecture, level);
}

function addition(
  data: NotesData,
  { namespace, ...seen }: BrokenObservation,
): { readonly change: NotesChange; readonly result: NoteOutcome } {
  const key = keyOfBroken(seen.digest, seen.architecture, seen.level);
  const notes = new Map(parseBroken(data).map((note) => [keyOf(note), note]));
  const known = notes.get(key);
  const isKnown = known?.namespaces.includes(namespace) === true;
  // No architecture of Go has a name that is no key.
  if (key === undefined || (isKnown && seen.until - known.until < refreshAfterMs))
    return { change: {}, result: 'known' };
  const others = known?.namespaces.filter((name) => name !== namespace) ?? [];
  notes.set(key, { ...seen, namespaces: [...others, namespace].slice(-maxNamespaces) });
  forgetOldest(notes, namespace);
  const changed = [...notes].flatMap(([each = '', note]) => {
    const text = formatBroken(note);
    return text === data[each] ? [] : [[each, text] as const];
  });
  const gone = Object.keys(data).flatMap((each) => (notes.has(each) ? [] : [[each, null] as const]));
  return { change: Object.fromEntries([...changed, ...gone]), result: isKnown ? 'known' : 'new' };
}

/** Anyone who runs a pod can cause notes, but only a limited number, and only for their own namespace. */
function forgetOldest(notes: Map<string | undefined, BrokenImage>, namespace: string): void {
  const own = oldestFirst(notes).filter(([, { namespaces }]) => namespaces.includes(namespace));
  for (const [key, note] of own.slice(0, -maxNotesOfNamespace)) {
    const namespaces = note.namespaces.filter((name) => name !== namespace);
    if (namespaces.length > 0) notes.set(key, { ...note, namespaces });
    else notes.delete(key);
  }
  const sizeOf = (key = '', note: BrokenImage): number => key.length + Buffer.byteLength(formatBroken(note));
  let bytes = [...notes].reduce((sum, [key, note]) => sum + sizeOf(key, note), 0);
  for (const [key, note] of oldestFirst(notes)) {
    if (notes.size <= maxBrokenImages && bytes <= maxBrokenBytes) return;
    notes.delete(key);
    bytes -= sizeOf(key, note);
  }
}

function oldestFirst<Key>(notes: ReadonlyMap<Key, BrokenImage>): readonly (readonly [Key, BrokenImage])[] {
  return [...notes].toSorted(([, a], [, b]) => a.until - b.until);
}
