/**
 * `--allow-list FILE`: images that may lack an architecture, in TOML:
 *
 *   [[allow]]
 *   image = "registry.example/legacy/**"    # as in `imageOverrides`
 *   architectures = ["arm64"]               # default: all
 *   reason = "moves in March"
 *   expires = "2027-03-31"                  # the last day, in UTC
 */
import { isRecord, unknownArchitecture } from '../../src/names/architecture.ts';
import type { Reference } from '../../src/images/references/reference.ts';
import { imagePattern, OverridePatternError } from '../../src/images/sources/overrides.ts';
import { locate } from '../../src/policy/configuration/toml-positions.ts';
import { UsageError } from '../program/subcommand.ts';
import { tomlOf } from '../program/toml-file.ts';

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

const maxEntries = 2000;
const maxReasonLength = 500;
const fields = ['image', 'architectures', 'reason', 'expires'];

/** @throws UsageError with file and line */
export function parseAllowList(text: string, file: string): readonly AllowEntry[] {
  const document = tomlOf(text, file);
  const unknown = Object.keys(document).find((key) => key !== 'allow');
  if (unknown !== undefined)
    throw new UsageError(`${file}: unknown key ${JSON.stringify(unknown)}; write [[allow]]`);
  const { allow = [] } = document;
  if (!Array.isArray(allow)) throw new UsageError(`${file}: allow must be a list of tables: write [[allow]]`);
  if (allow.length > maxEntries) throw new UsageError(`${file}: has more than ${maxEntries} entries`);
  const lineOf = locate(text);
  return allow.map((entry: unknown, index) => entryOf(entry, file, lineOf(['allow', index])));
}

function entryOf(entry: unknown, file: string, line: number): AllowEntry {
  const wrong = (problem: string): UsageError => new UsageError(`${file}:${line}: ${problem}`);
  if (!isRecord(entry)) throw wrong('an entry must be a table: write [[allow]]');
  const unknown = Object.keys(entry).find((key) => !fields.includes(key));
  if (unknown !== undefined)
    throw wrong(`unknown key ${JSON.stringify(unknown)}; known: ${fields.join(', ')}`);
  const { image, architectures, reason, expires } = entry;
  if (typeof image !== 'string') throw wrong('image must be a text');
  const isList = Array.isArray(architectures) && architectures.every((each) => typeof each === 'string');
  if (architectures !== undefined && !isList) throw wrong('architectures must be a list of texts');
  const [mistake] = (architectures ?? []).flatMap((name) => unknownArchitecture(name) ?? []);
  if (mistake !== undefined) throw wrong(mistake);
  if (reason !== undefined && (typeof reason !== 'string' || reason.length > maxReasonLength))
    throw wrong(`reason must be a text of at most ${maxReasonLength} characters`);
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

function patternOf(image: string, wrong: (problem: string) => UsageError): AllowEntry['matches'] {
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
