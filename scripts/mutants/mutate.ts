/** Changes of one operator, literal or statement in a source text that a test should notice. */
import { stripTypeScriptTypes } from 'node:module';
import { parse } from 'acorn';

export interface Mutant {
  /** Counts from 1. */
  readonly line: number;
  /** The offset of `before`. */
  readonly start: number;
  readonly before: string;
  readonly after: string;
}

/** A node of the syntax tree (https://github.com/estree/estree), with the fields that are read here. */
interface Tree {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly operator?: string;
  readonly left?: Tree;
  readonly right?: Tree;
  readonly test?: Tree;
  readonly consequent?: Tree;
  readonly alternate?: Tree | null;
  readonly body?: readonly Tree[];
  readonly callee?: Tree;
  readonly property?: Tree;
  readonly expression?: Tree;
  readonly directive?: string;
  readonly key?: Tree;
  readonly computed?: boolean;
  readonly name?: string;
  readonly value?: unknown;
  readonly raw?: string;
}

const operators: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
};
const signs: Readonly<Record<string, string>> = { '+': '-', '-': '+' };
const literals: Readonly<Record<string, string>> = { 0: '1', 1: '0', 2: '1', true: 'false', false: 'true' };

const comment = /\/\/.*|\/\*[^]*?\*\//g;
const isCode = /^[a-z]+(?:-[a-z\d]+)+$/;
const isLog = /^(?:debug|info|warn|error)$/;
/** Properties whose values are texts for people. */
const isText = /^(?:message|help|description|label|text|title|remedy|summary)$/;
const isExit = /^(?:Return|Throw|Continue|Break)Statement$/;

/**
 * The mutants of a TypeScript file. Types, comments, templates, log calls and texts for people have none.
 * @throws SyntaxError for a text that cannot be parsed
 */
export function mutantsOf(text: string): Mutant[] {
  // Spaces replace the types, so positions are the same in both texts.
  const script = stripTypeScriptTypes(text);
  const found = new Map<string, Mutant>();

  function add(start: number, end: number, after: string): void {
    const before = text.slice(start, end);
    const line = text.slice(0, start).split('\n').length;
    if (script.slice(start, end) === before) found.set(`${start} ${after}`, { line, start, before, after });
  }

  function addOther(node: Tree | undefined): void {
    if (node?.type !== 'Literal') return;
    const { value, raw = '' } = node;
    const other = typeof value === 'string' ? `'${value}-other'` : literals[raw];
    if (other !== undefined) add(node.start, node.end, other);
  }

  function addOperators({ left, right, operator = '' }: Tree): void {
    if (!left || !right) return;
    // Comments between the operands become spaces.
    const between = script
      .slice(left.end, right.start)
      .replaceAll(comment, (each) => ' '.repeat(each.length));
    const at = left.end + between.indexOf(operator);
    for (const each of operators[operator] ?? []) add(at, at + operator.length, each);
    const sign = typeof right.value === 'number' ? signs[operator] : undefined;
    if (sign !== undefined) add(at, at + 1, sign);
    if (operator === '===' || operator === '!==') [left, right].forEach(addOther);
  }

  function visit(node: Tree): void {
    const { type, start, end, test } = node;
    if (type === 'ImportDeclaration' || type === 'TemplateLiteral' || isLogCall(node)) return;
    if (type === 'BinaryExpression' || type === 'LogicalExpression') addOperators(node);
    else if (type === 'UnaryExpression' && node.operator === '!') add(start, start + 1, '');
    else if (type === 'ExpressionStatement' && node.directive === undefined && !isLogCall(node.expression))
      add(start, end, ';');
    else if (type === 'IfStatement' && test && !node.alternate && exits(node.consequent))
      add(test.start, test.end, 'false');
    else if (type === 'SwitchCase') addOther(test);
    else if (type === 'Literal' && (typeof node.value !== 'string' || isCode.test(node.value)))
      addOther(node);
    for (const child of childrenOf(node)) visit(child);
  }

  visit(parse(script, { ecmaVersion: 'latest', sourceType: 'module' }) as object as Tree);
  return [...found.values()];
}

/** Such as `log.info(…)` or `await this.#log.warn(…)`. */
function isLogCall(node: Tree | undefined): boolean {
  return node?.type === 'CallExpression' && isLog.test(node.callee?.property?.name ?? '');
}

/** Whether a branch only leaves its function or loop. */
function exits(branch: Tree | undefined): boolean {
  const [only, ...more] = branch?.type === 'BlockStatement' ? (branch.body ?? []) : [branch];
  return more.length === 0 && isExit.test(only?.type ?? '');
}

function childrenOf(node: Tree): Tree[] {
  const { key, value, computed } = node;
  return Object.values(node)
    .filter((child) => child !== key || computed === true)
    .filter((child) => child !== value || !isText.test(key?.name ?? ''))
    .flat()
    .filter(isTree);
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}
