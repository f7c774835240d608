/**
 * The chart's reference, from the program's settings and from `values/`: `values.yaml`, `values.schema.json`,
 * the table in its README and `files/settings.json`. So documented, accepted and rendered values agree.
 */
import type { JsonSchema, TomlValue } from '../../../src/policy/settings/setting.ts';
import { schemaWith } from './rules.ts';
import { settingSections, type SettingValue } from './settings.ts';
import type { Section, Value } from './value.ts';
import { general, labels } from './values/general.ts';
import { monitoring } from './values/monitoring.ts';
import { partSections } from './values/parts.ts';

/** Values that most clusters set; they come first. */
export const firstValues: readonly string[] = [
  'image.registry',
  'image.repository',
  'schedulableArchitectures',
  'preferredArchitecture',
  'kubeletConfig.config',
  'kubeletConfig.binDir',
  'registryCredentials',
  'proxies',
  'onUnknownImage',
  'failurePolicy',
];

/** Everything in page order: the values of `firstValues`, the others, labels and annotations. */
export function chartSections(): readonly Section[] {
  const sections = [...general, ...settingSections(), ...partSections, monitoring, labels];
  const all = new Map(sections.flatMap(({ values }) => values.map((value) => [value.key, value])));
  const first = firstValues.map((key) => all.get(key)).filter((value) => value !== undefined);
  return [
    { title: 'The ten values to look at first', values: first },
    ...sections.map(({ title, values }) => ({
      title,
      values: values.filter(({ key }) => !firstValues.includes(key)),
    })),
  ];
}

export function isSetting(value: Value): value is SettingValue {
  return 'setting' in value;
}

/** A tree from dotted keys. */
export interface Tree<T> {
  readonly [name: string]: Tree<T> | { readonly leaf: T };
}

export function treeOf<T extends { readonly key: string }>(values: readonly T[]): Tree<T> {
  const root: Record<string, unknown> = {};
  for (const value of values) {
    const steps = value.key.split('.');
    let at = root;
    for (const step of steps.slice(0, -1)) at = (at[step] ??= {}) as Record<string, unknown>;
    at[steps.at(-1) ?? ''] = { leaf: value };
  }
  return root as Tree<T>;
}

export function isLeaf<T>(node: Tree<T> | { readonly leaf: T }): node is { readonly leaf: T } {
  return Object.hasOwn(node, 'leaf');
}

/** The condition of a chart that depends on this one. Helm evaluates it before. */
const condition = 'enabled';

/** Draft-07, which Helm 3 and 4 both support. Only `global` may have other names: those of other charts. */
export function schemaFile(): string {
  const all = chartSections().flatMap(({ values }) => values);
  const settings = objectSchema(treeOf(all.filter(isSetting)));
  const { properties, ...rest } = objectSchema(treeOf(all), reference);
  const { additionalProperties: _, ...global } = properties['global'] as ObjectSchema;
  const help = 'For charts that have this one as a dependency: its condition.';
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart archwright',
    ...rest,
    properties: { ...properties, global, [condition]: { description: help, type: 'boolean' } },
    definitions: { settings },
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

interface ObjectSchema {
  readonly [keyword: string]: unknown;
  readonly properties: Readonly<Record<string, object>>;
}

function objectSchema(tree: Tree<Value>, schemaOf = ownSchema): ObjectSchema {
  const properties = Object.entries(tree).map(([name, node]): [string, object] => {
    if (!isLeaf(node)) return [name, objectSchema(node, schemaOf)];
    return [name, { description: node.leaf.help, ...schemaOf(node.leaf) }];
  });
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

function ownSchema(value: Value): object {
  const { schema, default: preset } = value;
  const whole = isSetting(value) ? schemaWith(schema, value.setting.kind.rule) : schema;
  return { ...nullable(whole, value), ...(preset !== undefined && { default: preset }) };
}

/** A setting has one schema, for the release and for pools of nodes. */
function reference(value: Value): object {
  if (!isSetting(value)) return ownSchema(value);
  return { $ref: `#/definitions/settings/properties/${value.key.replaceAll('.', '/properties/')}` };
}

/** Null unsets a value without default; Helm keeps null if the chart has no value. */
function nullable(schema: JsonSchema, { default: preset }: Value): JsonSchema {
  if (preset !== undefined) return schema;
  const nothing: TomlValue = { type: 'null' };
  return { anyOf: [schema, nothing] };
}
