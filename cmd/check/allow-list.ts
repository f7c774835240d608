/**
 * `--allow-list FILE`: images that may lack an architecture, in TOML:
 *
 *   [[allow]]
 *   image = "registry.example/legacy/**"    # as in `imageOverrides`
 *   architectures = ["arm64"]               # default: all
 *   reason = "moves in March"
 *   expires = "2027-03-31"                  # the last day, in UTC
 */
import { unknownArchitecture } from '../../src/names/architecture.ts';
import type { Reference } from '../../src/images/references/reference.ts';
import { imagePattern, OverridePatternError } from '../../src/images/sources/overrides.ts';
import { readTomlTables, type TomlTable, type WrongTable } from '../program/toml-file.ts';

export interface AllowEntry {
  readonly image: string;
  readonly matches: (reference: Reference) => boolean;
  /** `undefined`: all. */
  readonly architectures: readonly string[] | undefined;
  readonly reason: string | undefined;
  /** Such as `2027-03-31`. */
  readonly expires: string | undefined;
  readonly line: number;
}

const maxReasonLength = 500;
const form = {
  list: 'allow',
  maxTables: 2000,
  fields: ['image', 'architectures', 'reason', 'expires'],
} as const;

/** @throws UsageError with file and line */
export function parseAllowList(text: string, file: string): readonly AllowEntry[] {
  return readTomlTables(text, file, form, entryOf).tables;
}

function entryOf(table: TomlTable, wrong: WrongTable, line: number): AllowEntry {
  const { image, architectures, reason, expires } = table;
  if (typeof image !== 'string') throw wrong('image must be a string');
  const isList = Array.isArray(architectures) && architectures.every((each) => typeof each === 'string');
  if (architectures !== undefined && !isList) throw wrong('architectures must be a list of strings');
  const [mistake] = (architectures ?? []).flatMap((name) => unknownArchitecture(name) ?? []);
  if (mistake !== undefined) throw wrong(mistake);
  if (reason !== undefined && (typeof reason !== 'string' || reason.length > maxReasonLength))
    throw wrong(`reason must be a string of at most ${maxReasonLength} characters`);
  const day = dayOf(expires);
  if (expires !== undefined && day === undefined) throw wrong('expires must be a day such as "2027-03-31"');
  return {
    image,
    matches: patternOf(image, wrong),
    architectures,
    reason,
    expires: day,
    line,
  };
}

function patternOf(image: string, wrong: WrongTable): AllowEntry['matches'] {
  try {
    return imagePattern(image);
  } catch (error) {
    if (error instanceof OverridePatternError) throw wrong(error.message);
    throw error;
  }
}

/** TOML has dates of its own. */
function dayOf(value: unknown): string | undefined {
  const text =
    value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString().slice(0, 10) : value;
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text ? undefined : text;
}

/** What an entry did in a run, for notes and JSON. */
export type EntryState = 'used' | 'unused' | 'not-needed' | 'expired';

/** The entries of a run, and which of them were used. */
export class AllowList {
  readonly #entries: readonly AllowEntry[];
  /** In UTC, such as `2027-03-31`. */
  readonly #today: string;
  readonly #used = new Set<AllowEntry>();
  readonly #matched = new Set<AllowEntry>();

  /** @param now wall clock, milliseconds */
  constructor(entries: readonly AllowEntry[], now: number) {
    this.#entries = entries;
    this.#today = new Date(now).toISOString().slice(0, 10);
  }

  /**
   * The first entry that allows an image to lack an architecture.
   * @param isLacking whether it does; an entry for other images is not needed
   */
  find(reference: Reference, architecture: string, isLacking: boolean): AllowEntry | undefined {
    const matching = this.#entries.filter(
      (entry) => (entry.architectures?.includes(architecture) ?? true) && entry.matches(reference),
    );
    for (const entry of matching) this.#matched.add(entry);
    const found = isLacking ? matching.find((entry) => !this.#isExpired(entry)) : undefined;
    if (found) this.#used.add(found);
    return found;
  }

  states(): readonly (readonly [AllowEntry, EntryState])[] {
    return this.#entries.map((entry) => [entry, this.#stateOf(entry)]);
  }

  #stateOf(entry: AllowEntry): EntryState {
    if (this.#used.has(entry)) return 'used';
    if (this.#isExpired(entry)) return 'expired';
    return this.#matched.has(entry) ? 'not-needed' : 'unused';
  }

  #isExpired({ expires }: AllowEntry): boolean {
    return expires !== undefined && expires < this.#today;
  }
}
