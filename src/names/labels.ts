/** Syntax of label keys and values (kubernetes `apimachinery/pkg/util/validation`). */

/** A label value that is not empty, or the name part of a key. */
const name = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const domain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const maxDomainLength = 253;

/** Whether a value is a valid label value. An empty text is one. */
export function isLabelValue(value: unknown): value is string {
  return typeof value === 'string' && (value === '' || name.test(value));
}

export function isNonEmptyLabelValue(text: string): boolean {
  return name.test(text);
}

/** Whether a text is a valid key of a label or a taint: a name, or a DNS domain, a slash and a name. */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  if (slash < 0) return name.test(text);
  const prefix = text.slice(0, slash);
  return prefix.length <= maxDomainLength && domain.test(prefix) && name.test(text.slice(slash + 1));
}
