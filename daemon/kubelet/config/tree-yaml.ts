/**
 * YAML as Kubernetes reads it: YAML 1.1 scalars by the rules of sigs.k8s.io/yaml (goyaml.v2 resolve.go),
 * converted to JSON values. `yes`, `on` and `y` are booleans, `0777` and `1_000` numbers, dates strings; keys
 * become strings; `<<` merges. Only the first document counts.
 */
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, Scalar } from 'yaml';
import { DecodeError, maxDepth, type Tree, type TreeObject } from './tree.ts';

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
