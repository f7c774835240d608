/** Three kinds of patch. Each one takes an object and returns a new one. */
import jsonPatch, { type Operation } from 'fast-json-patch';

type Fields = Readonly<Record<string, unknown>>;

/** @returns undefined if the patch cannot be applied */
export function applyJsonPatch(object: object, operations: unknown): object | undefined {
  try {
    const copy: object = structuredClone(object);
    return jsonPatch.applyPatch(copy, structuredClone(operations) as Operation[], true, true).newDocument;
  } catch {
    return undefined;
  }
}

/** RFC 7386. */
export function applyMergePatch(object: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return structuredClone(patch);
  const result: Record<string, unknown> = isObject(object) ? { ...object } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, name);
    else result[name] = applyMergePatch(result[name], value);
  }
  return result;
}

/**
 * Server-side apply without schemas: objects are merged field by field, lists are replaced, and a field that
 * this manager applied before and omits now is removed.
 */
export function applyConfiguration(object: unknown, before: unknown, next: unknown): unknown {
  if (!isObject(next)) return structuredClone(next);
  const result: Record<string, unknown> = isObject(object) ? { ...object } : {};
  const owned: Fields = isObject(before) ? before : {};
  for (const name of Object.keys(owned)) if (!(name in next)) Reflect.deleteProperty(result, name);
  for (const [name, value] of Object.entries(next)) {
    result[name] = applyConfiguration(result[name], owned[name], value);
  }
  return result;
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
