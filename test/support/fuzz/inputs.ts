/**
 * Generated inputs for parsers: damaged examples, edited JSON trees of examples, edited lines, random words,
 * noise. fast-check generates them from a seed, and shrinks a failing input.
 */
import * as fc from 'fast-check';

/** A list of words; `more` are those with white space. */
export const words = (text: string, ...more: readonly string[]): string[] => [...text.split(' '), ...more];

/** Longer inputs find no more, and take longer to generate. */
const maxPieces = 40;

export function inputs({
  examples,
  words,
}: {
  readonly examples: readonly string[];
  readonly words: readonly string[];
}): fc.Arbitrary<Buffer> {
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
  const trees = examples.flatMap(treeOf);
  const long = examples.filter((example) => example.includes('\n'));
  const texts = [
    { weight: trees.length > 0 ? 4 : 6, arbitrary: damaged },
    { weight: 3, arbitrary: heap },
    ...(trees.length > 0 ? [{ weight: 4, arbitrary: editedTree(trees, word) }] : []),
    ...(long.length > 0 ? [{ weight: 3, arbitrary: editedLines(long, word) }] : []),
  ];
  return fc.oneof(
    { weight: 12, arbitrary: fc.oneof(...texts).map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: noise },
  );
}

/**
 * Any UTF-16 code unit, lone surrogates too. The library's own arbitrary takes a second to prepare in each
 * process.
 */
const characters = fc
  .array(fc.nat(0x10_ffff), { maxLength: 8 })
  .map((codes) => String.fromCodePoint(...codes));

/** Position, length and replacement of a damaged part. */
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

/** Values that break parsers: limits of ranges, names of object members, direction and byte order marks. */
const nasty = words(
  `__proto__ constructor toString \0 \uFEFF \u2028 \u202E \uD800 -0 1e999 9007199254740993 99999999999999999999
-9223372036854775808 NaN ../../.. %00 %zz [[[[[[[[ {{{{{{{{ """ '''`.replace('\n', ' '),
  '\r\n',
  '&a *a',
  '<<: *a',
  '!!binary ',
);

/** Names, numbers and punctuation of a document, without repetition. */
function wordsOf(text: string): string[] {
  return [...new Set(text.match(/[\w.:/@-]+|\s+|[^\s\w]/g) ?? [])];
}

type Parent = Record<string, unknown>;

/** The tree of a JSON example; empty for other languages. */
function treeOf(text: string): object[] {
  try {
    const tree: unknown = JSON.parse(text);
    return typeof tree === 'object' && tree !== null ? [tree] : [];
  } catch {
    return [];
  }
}

/** Changes one member of an object or list; a list is an object with numbers as keys. */
type Change = (parent: Parent, key: string, value: unknown) => void;

const changes: readonly Change[] = [
  (parent, key, value) => put(parent, key, value),
  (parent, key) => delete parent[key],
  (parent, key, value) => put(parent, typeof value === 'string' ? value : 'x', parent[key]),
  (parent, key) => put(parent, key, [parent[key]]),
  (parent, key) => put(parent, key, { [key]: parent[key] }),
  (parent, key) => put(parent, key, copiesOf(parent[key])),
  (parent, key, value) => put(parent, key, { ...(parent[key] as object), [String(value)]: value }),
];

/** A few hundred copies, but fewer of large values, so that repeated changes do not reach gigabytes. */
function copiesOf(value: unknown): unknown[] {
  const length = Math.ceil(30_000 / Math.max(100, JSON.stringify(value ?? '').length));
  return Array.from({ length }, () => structuredClone(value));
}

/** Defines an own property of any name, even `__proto__`. */
function put(parent: Parent, key: string, value: unknown): void {
  Object.defineProperty(parent, key, { value, configurable: true, enumerable: true, writable: true });
}

/** JSON examples with members replaced, removed, renamed, wrapped or repeated: valid JSON of wrong types. */
function editedTree(trees: readonly object[], word: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const value = fc.oneof(
    word,
    fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 53, -1e300, '', {}, [], [[]], [null]),
    fc.constant('a'.repeat(5000)),
  );
  const edits = fc.array(fc.tuple(fc.constantFrom(...changes), fc.nat(), value), {
    minLength: 1,
    maxLength: 4,
  });
  return fc.tuple(fc.constantFrom(...trees), edits).map(([tree, list]) => {
    const copy = { root: structuredClone(tree) };
    for (const [change, at, by] of list) {
      const places = placesIn(copy);
      const [parent, key] = places[at % Math.max(1, places.length)] ?? [copy, 'root'];
      // Copied, because all inputs share the value, and later changes may modify it.
      change(parent, key, structuredClone(by));
    }
    return JSON.stringify(copy.root) ?? '';
  });
}

/** A limit for the growth of an edited list of lists. */
const maxPlaces = 2000;

function placesIn(tree: object): readonly (readonly [parent: Parent, key: string])[] {
  const places: [Parent, string][] = [];
  const open: unknown[] = [tree];
  for (let next = open.pop(); next !== undefined && places.length < maxPlaces; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    for (const key of Object.keys(next)) {
      places.push([next as Parent, key]);
      open.push((next as Parent)[key]);
    }
  }
  return places;
}

/** Examples with lines removed, repeated or swapped, or with another value after the key. */
function editedLines(examples: readonly string[], word: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const edits = fc.array(fc.tuple(fc.nat(3), fc.nat(), fc.nat(), word), { minLength: 1, maxLength: 4 });
  return fc.tuple(fc.constantFrom(...examples), edits).map(([text, list]) => {
    const lines = text.split('\n');
    for (const [kind, from, to, by] of list) {
      const [a, b] = [from % lines.length, to % lines.length];
      const [line = '', other = ''] = [lines[a], lines[b]];
      if (kind === 0) lines.splice(a, 1, '');
      else if (kind === 1) lines.splice(b, 0, line);
      else if (kind === 2) [lines[a], lines[b]] = [other, line];
      else lines[a] = line.replace(/(?<=[=:])[^=:]*$/, () => ` ${by}`);
    }
    return lines.join('\n');
  });
}
