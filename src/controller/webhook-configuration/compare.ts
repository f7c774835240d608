/** Whether the API server holds what was meant. */
import { isObject } from './webhooks-file.ts';

/** Equal as JSON values, whatever the order of fields; a field that is `undefined` is one that is absent. */
export function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((each, index) => isSame(each, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return a === b;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => isSame(a[name], b[name]));
}
