/** `--allow-list FILE`: images that may lack an architecture, in TOML, documented in `docs/use/check.md`. */
import * as v from 'valibot';
import type { Reference } from '../../src/images/references/reference.ts';
import { imagePattern, OverridePatternError } from '../../src/images/sources/overrides.ts';
import { architecture, readTomlFile } from '../program/toml-file.ts';

export type AllowEntry = ReturnType<typeof parseAllowList>[number];

const entry = v.strictObject({
  image: v.pipe(
    v.string(),
    v.rawTransform(({ dataset: { value: image }, addIssue, NEVER }) => {
      try {
        return { image, matches: imagePattern(image) };
      } catch (error) {
        if (!(error instanceof OverridePatternError)) throw error;
        addIssue({ message: error.message });
        return NEVER;
      }
    }),
  ),
  /** Default: all. */
  architectures: v.exactOptional(v.array(architecture)),
  reason: v.exactOptional(v.pipe(v.string(), v.maxLength(500))),
  expires: v.exactOptional(
    v.pipe(v.unknown(), v.transform(dayOf), v.string('must be a day such as "2027-03-31"')),
  ),
});
const form = v.strictObject({
  allow: v.exactOptional(
    v.pipe(v.array(entry, 'must be a list of tables: write [[allow]]'), v.maxLength(2000)),
    [],
  ),
});

/** @throws UsageError with file and line */
export function parseAllowList(text: string, file: string) {
  const { value, lineOf } = readTomlFile(text, file, form);
  return value.allow.map(({ image, ...rest }, index) => ({
    ...image,
    ...rest,
    line: lineOf('allow', index),
  }));
}

/** TOML has dates of its own. */
function dayOf(value: unknown): string | undefined {
  const text =
    value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString().slice(0, 10) : value;
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text ? undefined : text;
}

export type EntryState = 'used' | 'unused' | 'not-needed' | 'expired';

export class AllowList {
  readonly #states: Map<AllowEntry, EntryState>;

  /** @param now wall clock, milliseconds */
  constructor(entries: readonly AllowEntry[], now: number) {
    const today = new Date(now).toISOString().slice(0, 10);
    const isExpired = ({ expires = today }: AllowEntry): boolean => expires < today;
    this.#states = new Map(entries.map((entry) => [entry, isExpired(entry) ? 'expired' : 'unused']));
  }

  /** The first entry that allows the image. @param isLacking false: such an entry is not needed */
  find(reference: Reference, architecture: string, isLacking: boolean): AllowEntry | undefined {
    const matching = [...this.#states].filter(
      ([entry, state]) =>
        state !== 'expired' &&
        (entry.architectures?.includes(architecture) ?? true) &&
        entry.matches(reference),
    );
    for (const [entry, state] of matching) if (state === 'unused') this.#states.set(entry, 'not-needed');
    const [found] = isLacking ? (matching[0] ?? []) : [];
    if (found) this.#states.set(found, 'used');
    return found;
  }

  states(): readonly (readonly [AllowEntry, EntryState])[] {
    return [...this.#states];
  }
}
