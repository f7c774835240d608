/** The object as the API server would store it: the webhook's patch applied to it. */
import jsonPatch from 'fast-json-patch';
import type { Operation } from '../../src/placement/decision.ts';
import type { JsonObject } from '../../src/webhook/validate-pod.ts';

/**
 * Applies a patch to a copy of an object.
 * @throws JsonPatchError if an operation does not apply; the API server would refuse such an object
 */
export function patchedObject(object: unknown, patch: readonly Operation[]): JsonObject {
  const operations = structuredClone(patch) as Parameters<typeof jsonPatch.applyPatch>[1];
  return jsonPatch.applyPatch(structuredClone(object) as JsonObject, operations, true).newDocument;
}

/** The fields that decide where a pod runs. */
const schedulingFields = ['schedulingGates', 'nodeSelector', 'affinity', 'tolerations'] as const;

/**
 * The scheduling fields of a pod or pod template.
 * @param basePath JSON pointer to the pod in the object
 */
export function schedulingOf(object: JsonObject, basePath: string): JsonObject {
  const spec = jsonPatch.getValueByPointer(object, `${basePath}/spec`) as JsonObject;
  return Object.fromEntries(
    schedulingFields.filter((field) => spec[field] !== undefined).map((field) => [field, spec[field]]),
  );
}
