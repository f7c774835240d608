/** `values.yaml`: values with help as comments. Unset ones are commented out, with default or example. */
import { stringify } from 'yaml';
import type { TomlValue } from '../../../src/policy/settings/setting.ts';
import { written } from '../../../src/policy/settings/setting.ts';
import { chartSections, isLeaf, isSetting, treeOf, type Tree } from './chart.ts';
import type { Section, Value } from './value.ts';

const width = 118;

export function valuesFile(): string {
  const sections = wholeTrees().map(({ title, values }) =>
    [`# --- ${title}`, '', ...print(treeOf(values), '')].join('\n'),
  );
  return `# The values of the chart. README.md has them as a table.\n\n${sections.join('\n')}`;
}

/** The sections, with all values of a table where the first of them is: YAML allows a table only once. */
function wholeTrees(): readonly Section[] {
  const sections = chartSections();
  const all = sections.flatMap(({ values }) => values);
  const printed = new Set<string>();
  return sections.flatMap(({ title, values }) => {
    const tables = new Set(values.map(tableOf).filter((table) => !printed.has(table)));
    for (const table of tables) printed.add(table);
    const whole = [...tables].flatMap((table) => all.filter((value) => tableOf(value) === table));
    return whole.length === 0 ? [] : [{ title, values: whole }];
  });
}

function tableOf({ key }: Value): string {
  return key.split('.')[0] ?? key;
}

function print(tree: Tree<Value>, indent: string): string[] {
  return Object.entries(tree).flatMap(([name, node]) => {
    if (isLeaf(node)) return leaf(name, node.leaf, indent);
    const inner = print(node, `${indent}  `);
    if (isSet(node)) return [`${indent}${name}:`, ...inner];
    // A table with nothing in it would be null.
    return [`${indent}# ${name}:`, ...inner];
  });
}

function leaf(name: string, value: Value, indent: string): string[] {
  const comment = wrap(value.help, width - indent.length).map((line) => `${indent}# ${line}`);
  const lines = yaml(name, value.default ?? shown(value));
  const prefix = value.default === undefined ? `${indent}# ` : indent;
  return [...comment, ...lines.map((line) => `${prefix}${line}`), ''];
}

/** The effective value if unset, else an example. */
function shown(value: Value): TomlValue {
  if (!isSetting(value)) return value.example;
  if (value.chartDefault !== undefined) return value.example;
  const preset = written(value.setting, value.setting.default);
  const isNothing = preset === undefined || (typeof preset === 'object' && Object.keys(preset).length === 0);
  return isNothing ? value.example : preset;
}

function isSet(tree: Tree<Value>): boolean {
  return Object.values(tree).some((node) => (isLeaf(node) ? node.leaf.default !== undefined : isSet(node)));
}

function yaml(name: string, value: TomlValue): string[] {
  return stringify({ [name]: value }, { lineWidth: 0 })
    .trimEnd()
    .split('\n');
}

function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns - 2) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
