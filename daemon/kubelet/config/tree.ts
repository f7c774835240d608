/**
 * Go's strict decoding of a document: duplicate and unknown members are refused, and names are case-sensitive
 * (sigs.k8s.io/json).
 */
import { items as itemsOf, members, readString } from '../../../src/http/json-text.ts';
import { parseJson, sizeOfJson } from '../../../src/http/json.ts';

export type Tree = null | boolean | number | string | readonly Tree[] | TreeObject;

export interface TreeObject {
  readonly members: readonly (readonly [name: string, value: Tree])[];
}

/** Configurations and responses are a few levels deep; each level uses the stack. */
export const maxDepth = 64;

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
