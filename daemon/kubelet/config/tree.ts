/**
 * Go's strict decoding of a document: duplicate and unknown members are refused, and names are case-sensitive
 * (sigs.k8s.io/json).
 *
 * YAML is read as Kubernetes reads it (sigs.k8s.io/yaml): YAML 1.1 as JSON values. `yes`, `on` and `y` are
 * booleans, `0777` and `1_000` numbers, dates strings; `<<` merges. Only the first document counts.
 */
import { parseAllDocuments, type Tags } from 'yaml';
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

/** Kubernetes turns these into JSON, which has neither dates nor sexagesimal numbers: they stay text. */
const leftAsText: ReadonlySet<unknown> = new Set(['tag:yaml.org,2002:timestamp', 'TIME']);

/** @throws DecodeError for a text that is not YAML or JSON */
export function parseYamlTree(text: string): Tree {
  const [document] = inYaml(() => {
    const documents = parseAllDocuments(text, { version: '1.1', customTags, logLevel: 'silent' });
    return Array.isArray(documents) ? documents : [];
  });
  const [error] = document?.errors ?? [];
  if (error !== undefined) {
    const line = error.linePos?.[0].line;
    const at = line === undefined ? '' : `line ${line}: `;
    throw new DecodeError(`yaml: ${at}${error.code.toLowerCase().replaceAll('_', ' ')}`);
  }
  let nodes = 0;
  function tree(value: unknown, depth: number): Tree {
    nodes += 1;
    if (nodes > maxNodes) throw new DecodeError('yaml: document contains excessive aliasing');
    if (depth > maxDepth) throw new DecodeError(`yaml: is nested deeper than ${maxDepth} levels`);
    if (Array.isArray(value)) return value.map((item) => tree(item, depth + 1));
    if (value instanceof Map)
      return { members: [...value].map(([key, item]) => [keyOf(key), tree(item, depth + 1)]) };
    if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
    if (value === null || value === undefined) return null;
    if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
    throw new DecodeError('yaml: a value that JSON does not have');
  }
  return tree(
    inYaml(() => document?.toJS({ mapAsMap: true }) as unknown),
    0,
  );
}

function customTags(tags: Tags): Tags {
  const isData = (tag: Tags[number]): boolean =>
    typeof tag === 'string' || !(leftAsText.has(tag.tag) || ('format' in tag && leftAsText.has(tag.format)));
  return tags.filter(isData).map(withDigits);
}

/** The library takes `.` and `e5` for numbers. In Go, numbers start with a digit. */
function withDigits(tag: Tags[number]): Tags[number] {
  if (typeof tag === 'string' || tag.collection !== undefined) return tag;
  if (tag.tag !== 'tag:yaml.org,2002:float' || !tag.test || tag.test.test('.inf')) return tag;
  return { ...tag, test: new RegExp(`(?=^[-+]?\\.?[0-9])${tag.test.source}`) };
}

/** The parser is recursive, and the messages of its errors may quote the text. */
function inYaml<T>(act: () => T): T {
  try {
    return act();
  } catch {
    throw new DecodeError(
      'yaml: it has too many levels or aliases, an unknown alias, or a merge without a map',
    );
  }
}

/** Keys of JSON are strings; numbers and booleans are converted. */
function keyOf(key: unknown): string {
  if (typeof key === 'string' || typeof key === 'boolean' || typeof key === 'number') return String(key);
  throw new DecodeError('yaml: unsupported map key: neither a string nor a number nor a boolean');
}
