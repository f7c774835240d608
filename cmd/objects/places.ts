/** Where the values of a document are written: offsets in its text. */
import { isAlias, isMap, isNode, isScalar, isSeq, type Document as YamlDocument, type Node } from 'yaml';
import { skipSpace, stringEnd, valueEnd } from '../../src/credentials/docker/go-encoding.ts';

/** Keys and indices from the top of a document to a value in it. */
export type Steps = readonly (string | number)[];

/** @returns in the order of the paths; a missing value has the place of its nearest parent */
export function yamlOffsets(
  document: YamlDocument,
  paths: readonly Steps[],
): readonly (number | undefined)[] {
  return paths.map((path) => {
    let node = resolved(document.contents, document);
    for (const step of path) {
      const next = child(node, step, document);
      if (next === undefined) break;
      node = next;
    }
    return node?.range?.[0];
  });
}

function resolved(value: unknown, document: YamlDocument): Node | undefined {
  const node = isAlias(value) ? value.resolve(document) : value;
  return isNode(node) ? node : undefined;
}

function child(node: Node | undefined, step: string | number, document: YamlDocument): Node | undefined {
  if (isSeq(node)) return resolved(node.items[Number(step)], document);
  if (!isMap(node)) return undefined;
  const own = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
  if (own) return resolved(own.value, document);
  // A merge: `<<: *base`, or a list of them. The first one counts.
  for (const { key, value } of node.items) {
    if (!isScalar(key) || key.source !== '<<') continue;
    const merged = resolved(value, document);
    for (const each of isSeq(merged) ? merged.items : [merged]) {
      const found = child(resolved(each, document), step, document);
      if (found) return found;
    }
  }
  return undefined;
}

interface Wanted {
  readonly index: number[];
  readonly children: Map<string, Wanted>;
}

/**
 * The same for JSON, in one pass over the text.
 * @param text valid JSON
 * @throws RangeError if it is nested too deeply
 */
export function jsonOffsets(text: string, paths: readonly Steps[]): readonly number[] {
  const top: Wanted = { index: [], children: new Map() };
  for (const [index, path] of paths.entries()) {
    let at = top;
    for (const step of path) {
      const next = at.children.get(String(step)) ?? { index: [], children: new Map() };
      at.children.set(String(step), next);
      at = next;
    }
    at.index.push(index);
  }
  const found = paths.map(() => 0);
  scan(text, skipSpace(text, 0), top, found);
  return found;
}

/** Notes the offset for a value and all that is wanted in it. @returns the end of the value */
function scan(text: string, from: number, wanted: Wanted, found: number[]): number {
  note(wanted, from, found);
  const open = text[from];
  if (wanted.children.size === 0 || (open !== '{' && open !== '[')) return valueEnd(text, from);
  let at = skipSpace(text, from + 1);
  for (let index = 0; text[at] !== '}' && text[at] !== ']' && at < text.length; index += 1) {
    let name = String(index);
    if (open === '{') {
      const end = stringEnd(text, at);
      name = JSON.parse(text.slice(at, end)) as string;
      at = skipSpace(text, skipSpace(text, end) + 1);
    }
    const next = wanted.children.get(name);
    at = skipSpace(text, next ? scan(text, at, next, found) : valueEnd(text, at));
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return at + 1;
}

/** What is not found in a value keeps the offset of the value. */
function note({ index, children }: Wanted, offset: number, found: number[]): void {
  for (const each of index) found[each] = offset;
  for (const child of children.values()) note(child, offset, found);
}
