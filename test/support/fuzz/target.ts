/** Parsers as targets of generated input. Unit tests feed each some hundreds, `npm run fuzz` as many as fit into a minute or a night. */
import * as fc from 'fast-check';

export interface FuzzTarget {
  readonly name: string;
  /** Documents that are understood; inputs are made from them by damage. */
  readonly examples: readonly string[];
  /** Words and marks of the language, besides those in the examples. */
  readonly words: readonly string[];
  /** Hands the input over as the program would. Throws for what may not be. */
  readonly feed: (input: Buffer) => unknown;
  /** Errors that the program expects of this parser. */
  readonly expected: readonly ErrorClass[];
}

// oxlint-disable-next-line typescript/no-explicit-any -- constructors of errors take all kinds of parameters
type ErrorClass = abstract new (...parameters: any[]) => Error;

/** A list of words; `more` are those with white space. */
export const words = (text: string, ...more: readonly string[]): string[] => [...text.split(' '), ...more];

/** No input of the size that is generated here may take longer; the slowest takes a few milliseconds on a quiet machine. */
export const maxInputMs = 2000;

const maxPieces = 40;

export class FuzzFinding extends Error {
  readonly code = 'finding';
  readonly temporary = false;
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'FuzzFinding';
  }
}

/** Feeds one input. @throws FuzzFinding */
export async function feed({ feed, expected }: FuzzTarget, input: Buffer): Promise<void> {
  const start = performance.now();
  try {
    await feed(input);
  } catch (error) {
    if (!expected.some((type) => error instanceof type)) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      throw new FuzzFinding(`an error that nobody expects: ${text}`, error);
    }
  }
  const took = performance.now() - start;
  if (took > maxInputMs) throw new FuzzFinding(`took ${Math.round(took)} ms`);
}

export function property(target: FuzzTarget): fc.IAsyncProperty<[Buffer]> {
  return fc.asyncProperty(inputs(target), (input) => feed(target, input));
}

/** Feeds generated inputs in a unit test. @throws where one of them breaks a rule, with the seed that leads to it */
export function assertFuzz(target: FuzzTarget, numRuns: number): Promise<void> {
  return fc.assert(property(target), { numRuns, includeErrorInReport: true });
}

/** Damaged examples, heaps of words, and noise. */
export function inputs({ examples, words }: Pick<FuzzTarget, 'examples' | 'words'>): fc.Arbitrary<Buffer> {
  const word = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...words, ...examples.flatMap(wordsOf)) },
    { weight: 1, arbitrary: fc.constantFrom(...nasty) },
    { weight: 1, arbitrary: characters },
  );
  const heap = fc.array(word, { maxLength: maxPieces }).map((parts) => parts.join(''));
  const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  const damaged = fc
    .tuple(
      fc.constantFrom(...examples),
      fc.array(fc.tuple(damage, fc.nat(), fc.nat(40), word), { maxLength: 6 }),
    )
    .map(([text, edits]) => edits.reduce((before, edit) => damagedBy(before, edit), text));
  return fc.oneof(
    { weight: 6, arbitrary: damaged.map((text) => Buffer.from(text)) },
    { weight: 3, arbitrary: heap.map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: noise },
  );
}

/** Any of Unicode, halves of pairs too. The library's own takes a second of preparation in each process. */
const characters = fc
  .array(fc.nat(0x10_ffff), { maxLength: 8 })
  .map((codes) => String.fromCodePoint(...codes));

/** Where a text is damaged, how far, and by which word. */
type Edit = readonly [damage: Damage, at: number, length: number, word: string];
type Damage = (around: Readonly<Record<'before' | 'part' | 'after', string>>, edit: Edit) => string;

const damages: Readonly<Record<string, Damage>> = {
  insert: ({ before, part, after }, [, , , word]) => before + word + part + after,
  delete: ({ before, after }) => before + after,
  replace: ({ before, after }, [, , , word]) => before + word + after,
  repeat: ({ before, part, after }, [, at]) => before + part.repeat(2 + (at % 50)) + after,
  nest: ({ before, part, after }, [, , length, word]) =>
    before + word.slice(0, 2).repeat(length * 50) + part + after,
};
const damage = fc.constantFrom(...Object.values(damages));

function damagedBy(text: string, edit: Edit): string {
  const [damage, at, length] = edit;
  const start = text.length === 0 ? 0 : at % text.length;
  const [end, before] = [start + length, text.slice(0, start)];
  return damage({ before, part: text.slice(start, end), after: text.slice(end) }, edit);
}

/** What breaks parsers: ends of ranges, names that objects have, marks of direction and of order. */
const nasty = words(
  `__proto__ constructor toString \0 \uFEFF \u2028 \u202E \uD800 -0 1e999 9007199254740993 99999999999999999999
-9223372036854775808 NaN ../../.. %00 %zz [[[[[[[[ {{{{{{{{ """ '''`.replace('\n', ' '),
  '\r\n',
  '&a *a',
  '<<: *a',
  '!!binary ',
);

/** Names, numbers and marks of a document, each once. */
function wordsOf(text: string): string[] {
  return [...new Set(text.match(/[\w.:/@-]+|\s+|[^\s\w]/g) ?? [])];
}
