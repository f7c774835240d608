/**
 * One copy of equal values. Thousands of images have the same platforms at the same endpoint; each distinct value is kept
 * once, and counted once, for as long as something uses it.
 */
import { mapEntryBytes, objectBytes, textBytes } from './size.ts';

/** A use of a kept value. */
export interface Interned<Value> {
  readonly value: Value;
}

export interface Interner<Value> {
  /**
   * Begins a use of the value with this text.
   * @param text equal for equal values and for no others
   * @param make called where no such value is kept
   */
  take(text: string, make: () => Value): Interned<Value>;
  /** Ends a use that `take` began. */
  release(interned: Interned<Value>): void;
  /** Number of distinct values. */
  readonly size: number;
  /** Bytes of all kept values. */
  readonly bytes: number;
}

interface Kept<Value> extends Interned<Value> {
  readonly text: string;
  readonly bytes: number;
  uses: number;
}

/**
 * Makes an empty interner.
 * @param bytesOf what a value costs in memory
 */
export function createInterner<Value>(bytesOf: (value: Value) => number): Interner<Value> {
  const byText = new Map<string, Kept<Value>>();
  let bytes = 0;

  return {
    take: (text, make) => {
      const kept = byText.get(text);
      if (kept) {
        kept.uses += 1;
        return kept;
      }
      const value = make();
      const made = { value, text, bytes: bytesOf(value) + ownBytes(text), uses: 1 };
      byText.set(text, made);
      bytes += made.bytes;
      return made;
    },
    release: (interned) => {
      const kept = interned as Kept<Value>;
      kept.uses -= 1;
      if (kept.uses > 0) return;
      byText.delete(kept.text);
      bytes -= kept.bytes;
    },
    get size() {
      return byText.size;
    },
    get bytes() {
      return bytes;
    },
  };
}

function ownBytes(text: string): number {
  return textBytes(text) + objectBytes(4) + mapEntryBytes;
}
