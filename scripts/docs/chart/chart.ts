/**
 * The chart's own reference: `values.yaml`, `values.schema.json`, the table in its README and `files/settings.json`, made from
 * the settings of the program and from `values/`. What is documented, accepted and rendered cannot drift apart.
 */
import type { JsonSchema, TomlValue } from '../../../src/policy/setting.ts';
import { settingSections, type SettingValue } from './settings.ts';
import type { Section, Value } from './value.ts';
import { general } from './values/general.ts';
import { monitoring } from './values/monitoring.ts';
import { partSections } from './values/parts.ts';

/** Everything, in the order of the pages. */
export function chartSections(): readonly Section[] {
  return [...general, ...settingSections(), ...partSections, monitoring];
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

/** Draft-07, which Helm 3 and 4 both know. Whatever is not named is refused. */
export function schemaFile(): string {
  const all = chartSections().flatMap(({ values }) => values);
  const settings = treeOf(all.filter(isSetting));
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart archwright',
    ...objectSchema(treeOf(all), 'global'),
    definitions: { settings: objectSchema(settings) },
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

/** @param open name of the one table that may hold what other charts have there */
function objectSchema(tree: Tree<Value>, open?: string): { readonly [keyword: string]: unknown } {
  const properties = Object.entries(tree).map(([name, node]): [string, unknown] => {
    if (!isLeaf(node)) {
      const inner = objectSchema(node);
      return [name, name === open ? { ...inner, additionalProperties: true } : inner];
    }
    const { help, schema, default: preset } = node.leaf;
    return [name, { description: help, ...nullable(schema, node.leaf), ...(preset !== undefined && { default: preset }) }];
  });
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

/** What has no default may be set back to nothing by null, which Helm keeps where the chart has no value. */
function nullable(schema: JsonSchema, { default: preset }: Value): JsonSchema {
  if (preset !== undefined) return schema;
  const nothing: TomlValue = { type: 'null' };
  return { anyOf: [schema, nothing] };
}
