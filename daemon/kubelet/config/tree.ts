/**
 * Go's strict decoding of a document: duplicate and unknown members are refused, and names are case-sensitive
 * (sigs.k8s.io/json).
 *
 * YAML is read as Kubernetes reads it: YAML 1.1 scalars by the rules of sigs.k8s.io/yaml (goyaml.v2
 * resolve.go), converted to JSON values. `yes`, `on` and `y` are booleans, `0777` and `1_000` numbers, dates
 * strings; keys become strings; `<<` merges. Only the first document counts.
 */
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, Scalar } from 'yaml';
import { items as itemsOf, members, readString } from '../../../src/http/json-text.ts';
import { parseJson, sizeOfJson } from '../../../src/http/json.ts';

export type Tree = null | boolean | number | string | readonly Tree[] | TreeObject;

export interface TreeObject {
  readonly members: readonly (readonly [name: string, value: Tree])[];
}

/** Configurations and responses are a few levels deep; each level uses the stack. */
const maxDepth = 64;

/** The error in a document. Quotes names of fields, never values. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  readonly code = 'malformed';
  readonly temporary = false;
  readonly where = 'document';
}

/**
 * The fields of an object; `null` is an empty object, as in Go.
 * @param path for messages, such as `providers[0]`
 * @param known names of fields
 * @param strict receives the errors of strict decoding: unknown and duplicate fields
 * @returns the last value of each known field
 * @throws DecodeError for a value of another kind
 */
export function fields<const Name extends string>(
  tree: Tree,
  path: string,
  known: readonly Name[],
  strict: string[],
): Partial<Record<Name, Tree>> {
  const found: Partial<Record<Name, Tree>> = {};
  for (const [member, value] of membersOf(tree, path)) {
    const name = known.find((field) => field === member);
    const where = JSON.stringify(childPath(path, member));
    if (name === undefined) strict.push(`unknown field ${where}`);
    else if (Object.hasOwn(found, name)) strict.push(`duplicate field ${where}`);
    if (name !== undefined) found[name] = value;
  }
  return found;
}

/** The members of a map, in order; `null` is an empty map; throws DecodeError for a value of another kind. */
export function entries(tree: Tree, path: string, strict: string[]): ReadonlyMap<string, Tree> {
  const found = new Map<string, Tree>();
  for (const [name, value] of membersOf(tree, path)) {
    if (found.has(name)) strict.push(`duplicate field ${JSON.stringify(childPath(path, name))}`);
    found.set(name, value);
  }
  return found;
}

/** The items of a list; `null` and an absent list are `undefined`. */
export function items<T>(
  tree: Tree | undefined,
  path: string,
  read: (item: Tree, path: string) => T,
): readonly T[] | undefined {
  if (tree === undefined || tree === null) return undefined;
  if (!isList(tree)) throw mismatch(tree, path, 'list');
  return tree.map((item, index) => read(item, `${path}[${index}]`));
}

/** A string; `null` and an absent value are empty. */
export function text(tree: Tree | undefined, path: string): string {
  if (tree === undefined || tree === null) return '';
  if (typeof tree !== 'string') throw mismatch(tree, path, 'string');
  return tree;
}

/** A boolean; `null` and an absent value are `undefined`. */
export function boolean(tree: Tree | undefined, path: string): boolean | undefined {
  if (tree === undefined || tree === null) return undefined;
  if (typeof tree !== 'boolean') throw mismatch(tree, path, 'bool');
  return tree;
}

function childPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function membersOf(tree: Tree, path: string): TreeObject['members'] {
  if (tree === null) return [];
  if (typeof tree !== 'object' || isList(tree)) throw mismatch(tree, path, 'object');
  return tree.members;
}

function mismatch(tree: Exclude<Tree, null>, path: string, wanted: string): DecodeError {
  const at = path === '' ? 'the document' : JSON.stringify(path);
  const kind = isList(tree) ? 'array' : typeof tree === 'boolean' ? 'bool' : typeof tree;
  return new DecodeError(`cannot unmarshal ${kind} into ${at} of type ${wanted}`);
}

function isList(tree: Tree): tree is readonly Tree[] {
  return Array.isArray(tree);
}

/** @throws DecodeError for invalid JSON, without quoting it */
export function parseJsonTree(json: string): Tree {
  if (parseJson(json) === undefined) throw new DecodeError('is not valid JSON');
  const { depth } = sizeOfJson(Buffer.from(json));
  if (depth > maxDepth) throw new DecodeError(`is nested deeper than ${maxDepth} levels`);
  return treeOf(json);
}

function treeOf(json: string): Tree {
  const found = members(json);
  if (found) return { members: found.map(([name, value]) => [name, treeOf(value)]) };
  return itemsOf(json)?.map(treeOf) ?? readString(json) ?? (JSON.parse(json) as null | boolean | number);
}

/** Aliases can expand a small text without limit; configurations have a few hundred values. */
const maxNodes = 100_000;

const tooDeep = `yaml: is nested deeper than ${maxDepth} levels`;

/** @param strict receives duplicate keys with lines @throws DecodeError for a text that is not YAML or JSON */
export function parseYamlTree(text: string, strict: string[]): Tree {
  const lines = new LineCounter();
  const document = firstDocument(text, lines);
  const [error] = document?.errors ?? [];
  if (error !== undefined) {
    const line = error.linePos?.[0].line;
    const at = line === undefined ? '' : `line ${line}: `;
    throw new DecodeError(`yaml: ${at}${error.code.toLowerCase().replaceAll('_', ' ')}`);
  }
  let nodes = 0;

  function tree(node: unknown, depth: number): Tree {
    nodes += 1;
    if (nodes > maxNodes) throw new DecodeError('yaml: document contains excessive aliasing');
    if (depth > maxDepth) throw new DecodeError(tooDeep);
    if (isAlias(node)) {
      const named = document && node.resolve(document);
      if (named === undefined) throw new DecodeError('yaml: unknown anchor referenced');
      return tree(named, depth + 1);
    }
    if (isSeq(node)) return node.items.map((item) => tree(item, depth + 1));
    if (isMap(node)) return { members: members(node.items, depth) };
    return isScalar(node) ? scalarOf(node) : null;
  }

  function members(
    pairs: readonly { key: unknown; value?: unknown }[],
    depth: number,
  ): TreeObject['members'] {
    const found: [string, Tree][] = [];
    const names = new Set<string>();
    const add = (name: string, value: Tree, key: unknown): void => {
      if (names.has(name))
        strict.push(`yaml: ${lineOf(key, lines)}key ${JSON.stringify(name)} already set in map`);
      names.add(name);
      found.push([name, value]);
    };
    for (const { key, value } of pairs) {
      if (isScalar(key) && key.type === 'PLAIN' && key.source === '<<') {
        for (const [name, merged] of mergedMembers(tree(value, depth + 1))) add(name, merged, key);
      } else add(keyOf(tree(key, depth + 1), key), tree(value, depth + 1), key);
    }
    return found;
  }

  return tree(document?.contents, 0);
}

function firstDocument(text: string, lineCounter: LineCounter): Document | undefined {
  const options = { version: '1.1', schema: 'failsafe', logLevel: 'silent' } as const;
  try {
    const documents = parseAllDocuments(text, { ...options, uniqueKeys: false, lineCounter });
    return Array.isArray(documents) ? documents[0] : undefined;
  } catch (error) {
    // The parser is recursive.
    if (error instanceof RangeError) throw new DecodeError(tooDeep);
    throw error;
  }
}

function mergedMembers(value: Tree): TreeObject['members'] {
  const maps = Array.isArray(value) ? (value as readonly Tree[]) : [value];
  return maps.flatMap((map) => {
    if (map !== null && typeof map === 'object' && 'members' in map) return map.members;
    throw new DecodeError('yaml: map merge requires map or sequence of maps as the value');
  });
}

/** Keys of JSON are strings; numbers and booleans are converted. */
function keyOf(key: Tree, node: unknown): string {
  if (typeof key === 'string' || typeof key === 'boolean') return String(key);
  if (typeof key === 'number') return isScalar(node) ? (node.source ?? String(key)) : String(key);
  throw new DecodeError('yaml: unsupported map key: neither a string nor a number nor a boolean');
}

function lineOf(node: unknown, lines: LineCounter): string {
  const start = isNode(node) ? node.range?.[0] : undefined;
  return start === undefined ? '' : `line ${lines.linePos(start).line}: `;
}

const resolvable: ReadonlySet<string> = new Set(
  ['str', 'bool', 'int', 'float', 'null', 'timestamp'].map((name) => `tag:yaml.org,2002:${name}`),
);

function scalarOf(node: Scalar): Tree {
  const text = typeof node.value === 'string' ? node.value : (node.source ?? '');
  if (node.tag === 'tag:yaml.org,2002:binary') return Buffer.from(text, 'base64').toString('utf8');
  const plain = node.type === undefined || node.type === 'PLAIN';
  const asText =
    node.tag !== undefined && (node.tag === 'tag:yaml.org,2002:str' || !resolvable.has(node.tag));
  return plain && !asText ? resolvePlain(text) : text;
}

const words: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map(isWord(true)),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(isWord(false)),
  ...['', '~', 'null', 'Null', 'NULL'].map(isWord(null)),
]);

function isWord(value: boolean | null) {
  return (word: string) => [word, value] as const;
}

const notJson = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const integer = /^[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
const float = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** A scalar without quotes. No field is a number, so the value of a number is irrelevant. */
function resolvePlain(text: string): Tree {
  const word = words.get(text);
  if (word !== undefined) return word;
  if (notJson.test(text)) throw new DecodeError('yaml: a number that JSON does not have');
  if (!/^[-+.0-9]/.test(text)) return text;
  const digits = text.startsWith('.') ? text : text.replaceAll('_', '');
  return integer.test(digits) || float.test(digits) ? Number.parseFloat(digits) : text;
}
