/** The four kinds of patch. Each one takes an object and returns a new one. */
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

/** RFC 7386. With `keys`, lists under these names are merged by the named field (strategic merge patch). */
export function applyMergePatch(
  object: unknown,
  patch: unknown,
  keys: Readonly<Record<string, string>> = {},
): unknown {
  if (!isObject(patch)) return structuredClone(patch);
  const result: Record<string, unknown> = isObject(object) ? { ...object } : {};
  for (const [name, value] of Object.entries(patch)) {
    const key = keys[name];
    const before = result[name];
    if (value === null) Reflect.deleteProperty(result, name);
    else if (key !== undefined && Array.isArray(value) && Array.isArray(before)) {
      result[name] = mergeLists(before, value, key, keys);
    } else result[name] = applyMergePatch(before, value, keys);
  }
  return result;
}

/** Lists that a strategic merge patch merges, with the field: those of built-in kinds in tests. */
export const strategicKeys: Readonly<Record<string, string>> = {
  conditions: 'type',
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  volumes: 'name',
  imagePullSecrets: 'name',
  ownerReferences: 'uid',
  schedulingGates: 'name',
};

function mergeLists(
  before: unknown[],
  patch: unknown[],
  key: string,
  keys: Readonly<Record<string, string>>,
): unknown[] {
  const result = [...before];
  for (const each of patch) {
    const at = result.findIndex((other) => isObject(other) && isObject(each) && other[key] === each[key]);
    if (isObject(each) && each['$patch'] === 'delete') {
      if (at >= 0) result.splice(at, 1);
    } else if (at < 0) result.push(structuredClone(each));
    else result[at] = applyMergePatch(result[at], each, keys);
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
