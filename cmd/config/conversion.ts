/**
 * The configuration of another program becomes archwright's. Each program says what each of its settings
 * becomes, and why a setting has no counterpart.
 */
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';

export interface Converted {
  /** Settings and chart values, as in `values.yaml`. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly resources: readonly JsonObject[];
  /** What a person has to know or do. */
  readonly notes: readonly Note[];
}

export interface Note {
  readonly key: string;
  readonly text: string;
}

export interface Origin {
  readonly name: string;
  recognizes(document: JsonObject): boolean;
  convert(document: JsonObject): Converted;
}

/** Values of both charts: labels and annotations of objects of a kind. None is a setting of the program. */
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
export type Conversion = (
  value: unknown,
  into: { set(key: string, value: unknown): void; note(text: string): void },
) => void;

export const noCounterpart = 'has no counterpart and is left out';

export function convertEach(
  members: Readonly<Record<string, unknown>>,
  rules: Readonly<Record<string, Conversion>>,
): Pick<Converted, 'values' | 'notes'> {
  const values: Record<string, unknown> = {};
  const notes: Note[] = [];
  for (const [key, value] of Object.entries(members)) {
    const note = (text: string): void => void notes.push({ key, text });
    const set = (name: string, converted: unknown): void => void (values[name] = converted);
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    if (rule) rule(value, { set, note });
    else note(noCounterpart);
  }
  return { values, notes };
}

export function same(name: string): Conversion {
  return (value, into) => into.set(name, value);
}

export function dropped(why: string): Conversion {
  return (_value, into) => into.note(`is left out: ${why}`);
}

export function usesImage(document: JsonObject, image: RegExp): boolean {
  return containersOf(document).some((container) =>
    textsOf([container['image']]).some((name) => image.test(name)),
  );
}

/** `-flag=value`, `--flag value` and `-switch` of all containers of a Deployment, by name without dashes. */
export function argumentsOf(document: JsonObject): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const container of containersOf(document)) {
    const words = [...textsOf(container['command']), ...textsOf(container['args'])];
    for (const [index, word] of words.entries()) {
      const [, name, value] = /^--?([a-z][-a-z0-9]*)(?:=(.*))?$/s.exec(word) ?? [];
      if (name === undefined) continue;
      const next = words[index + 1];
      found[name] = value ?? (next === undefined || next.startsWith('-') ? 'true' : next);
    }
  }
  return found;
}

function containersOf(document: JsonObject): readonly JsonObject[] {
  const containers = within(within(within(document, 'spec'), 'template'), 'spec')['containers'];
  return Array.isArray(containers) ? containers.filter(isRecord) : [];
}

export function within(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isRecord(value) ? value : {};
}

export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
