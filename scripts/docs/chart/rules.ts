/**
 * The rules of settings as keywords of JSON schema, for `values.schema.json`. The chart knows architectures
 * only by name: a schema cannot say which unknown name is a mistake.
 */
import type { JsonSchema, Rule, TextRule } from '../../../src/policy/settings/setting.ts';

/** A schema that also refuses what the rule refuses, except durations and sizes out of range (`check.yaml`). */
export function schemaWith(schema: JsonSchema, rule: Rule | undefined): JsonSchema {
  if (rule === undefined || 'unit' in rule) return schema;
  if ('match' in rule) {
    // Each known name matches the patterns.
    const known = architecturesOf(rule);
    if (known !== undefined) return { enum: known };
    return { ...schema, allOf: rule.match.map(({ pattern }) => ({ pattern })) };
  }
  if ('items' in rule) {
    const { anyOf } = schema;
    if (Array.isArray(anyOf)) {
      const [one, many] = anyOf as readonly JsonSchema[];
      return { ...schema, anyOf: [schemaWith(one ?? {}, rule.items), schemaWith(many ?? {}, rule)] };
    }
    return { ...schema, items: schemaWith(below(schema, 'items'), rule.items) };
  }
  if ('fields' in rule) {
    const properties = Object.entries(below(schema, 'properties')).map(
      ([name, inner]) => [name, schemaWith(inner as JsonSchema, rule.fields[name])] as const,
    );
    return { ...schema, properties: Object.fromEntries(properties) };
  }
  const { keys, values } = rule;
  return {
    ...schema,
    ...(keys && { propertyNames: schemaWith({}, keys) }),
    ...(values && { additionalProperties: schemaWith(below(schema, 'additionalProperties'), values) }),
  };
}

/** The patterns that the text of a flag, or of each item of a list, must match. */
export function patternsOf({ enum: words, type, pattern }: JsonSchema, rule: Rule | undefined): string[] {
  if (Array.isArray(words)) return [oneOf(words as readonly string[])];
  if (type === 'integer') return ['^-?[0-9]{1,15}$'];
  if (rule && 'match' in rule) {
    const known = architecturesOf(rule);
    return known ? [oneOf(known)] : rule.match.map((each) => each.pattern);
  }
  return [typeof pattern === 'string' ? pattern : String.raw`^[\s\S]+$`];
}

/** Known architectures, if the rule is about them. */
function architecturesOf({ similar, match }: TextRule): readonly string[] | undefined {
  if (similar === undefined) return undefined;
  const isAny = match.every(({ pattern }) => new RegExp(pattern).test('*'));
  return isAny ? ['*', ...similar.names] : similar.names;
}

function oneOf(words: readonly string[]): string {
  return `^(?:${words.map((word) => word.replaceAll('*', String.raw`\*`)).join('|')})$`;
}

function below(schema: JsonSchema, keyword: string): JsonSchema {
  const inner = schema[keyword];
  return typeof inner === 'object' && !Array.isArray(inner) ? (inner as JsonSchema) : {};
}
