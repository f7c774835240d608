/** Where the values of a YAML document are written: offsets in its text. */
import { isAlias, isMap, isNode, isScalar, isSeq, type Document as YamlDocument, type Node } from 'yaml';

/** Keys and indices from the top of a document to a value in it. */
export type Steps = readonly (string | number)[];

/** A missing value has the offset of its nearest parent. */
export function yamlOffset(document: YamlDocument, path: Steps): number | undefined {
  let node = resolved(document.contents, document);
  for (const step of path) {
    const next = child(node, step, document);
    if (next === undefined) break;
    node = next;
  }
  return node?.range?.[0];
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
