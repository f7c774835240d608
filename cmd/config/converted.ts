/**
 * Moving over from another program: its configuration in, ours out. Each program has a file of its own, which says what
 * each of its settings becomes, and of what has no counterpart why. `convert.ts` finds out which program it is.
 */
import type { JsonObject } from '../../src/webhook/validate-pod.ts';

/** What becomes of a configuration. */
export interface Converted {
  /** Settings and chart values, as in `values.yaml`. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Custom resources to apply. */
  readonly resources: readonly JsonObject[];
  /** What a person has to know or do. */
  readonly notes: readonly Note[];
}

export interface Note {
  /** Setting of the other program. */
  readonly key: string;
  readonly text: string;
}

/** A program that is moved over from. */
export interface Origin {
  readonly name: string;
  /** Whether a document is this program's. */
  recognizes(document: JsonObject): boolean;
  convert(document: JsonObject): Converted;
}

/** Values of both charts that say what labels and annotations objects of a kind get; none is a setting of the program. */
export const metadataValues = [
  'pod',
  'issuer',
  'certificate',
  'mutatingwebhookconfiguration',
  'rolebinding',
  'clusterrole',
  'clusterrolebinding',
  'serviceaccount',
  'deployment',
] as const;

/** What a setting of the other program becomes. */
export type Conversion = (value: unknown, into: Collector) => void;

/** Takes what a conversion found. */
export interface Collector {
  set(key: string, value: unknown): void;
  note(text: string): void;
}

/** Converts each member of a table by its rule; what has no rule is noted. */
export function convertEach(
  members: Readonly<Record<string, unknown>>,
  rules: Readonly<Record<string, Conversion>>,
): Pick<Converted, 'values' | 'notes'> {
  const values: Record<string, unknown> = {};
  const notes: Note[] = [];
  for (const [key, value] of Object.entries(members)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    const collector: Collector = {
      set: (name, converted) => {
        values[name] = converted;
      },
      note: (text) => {
        notes.push({ key, text });
      },
    };
    if (rule) rule(value, collector);
    else notes.push({ key, text: 'has no counterpart and is left out' });
  }
  return { values, notes };
}

/** A setting with the same name and meaning. */
export function same(name: string): Conversion {
  return (value, into) => into.set(name, value);
}

/** A setting that has no counterpart, and why. */
export function dropped(why: string): Conversion {
  return (_value, into) => into.note(`is left out: ${why}`);
}
