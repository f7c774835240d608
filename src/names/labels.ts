/** Syntax of label keys and values (kubernetes `apimachinery/pkg/util/validation`). */

const nameSource = '[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const part = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';

/** A label value that is not empty, or the name part of a key. */
export const namePattern = `^${nameSource}$`;
/** A key: a name, or a DNS domain of at most 253 characters, a slash and a name. */
export const keyPatterns = [
  `^(?:${part}(?:\\.${part})*/)?${nameSource}$`,
  '^(?:[^/]{1,253}/)?[^/]*$',
] as const;

const name = new RegExp(namePattern);
const keys = keyPatterns.map((pattern) => new RegExp(pattern));

/** Whether a value is a valid label value. An empty text is one. */
export function isLabelValue(value: unknown): value is string {
  return typeof value === 'string' && (value === '' || name.test(value));
}

export function isNonEmptyLabelValue(text: string): boolean {
  return name.test(text);
}

/** Whether a text is a valid key of a label or a taint: a name, or a DNS domain, a slash and a name. */
export function isLabelKey(text: string): boolean {
  return keys.every((pattern) => pattern.test(text));
}

/**
 * Whether an object meets a requirement of a selector, or a node an expression of node affinity (kubernetes
 * apimachinery pkg/labels/selector.go `Requirement.Matches`). Allocates nothing, because it runs for each admission.
 * @param value of the object's label; `undefined`: it has none
 */
export function meets(
  { operator, values = [] }: { readonly operator: string; readonly values?: readonly string[] },
  value: string | undefined,
): boolean {
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  if (operator === 'NotIn') return value === undefined || !values.includes(value);
  if (operator === 'In') return value !== undefined && values.includes(value);
  const [number, bound] = [integerOf(value), integerOf(values[0])];
  return operator === 'Gt' ? number > bound : operator === 'Lt' && number < bound;
}

/** Not a number, which no comparison is true for, if the text is none. */
function integerOf(text = ''): number {
  return /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
}
