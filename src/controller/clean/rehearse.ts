/** A dry run applies each JSON patch to a copy of the object, so that it reports a change that would fail or leave something behind. */
import jsonPatch, { type Operation } from 'fast-json-patch';
import type { Patch } from '../../kube/api/client.ts';

/**
 * @param patchOf `undefined`: nothing to change
 * @returns why the change would fail; `undefined`: it would succeed, or the patch is not a JSON patch
 */
export function rehearse<T extends object>(
  object: T,
  patchOf: (object: T) => Patch | undefined,
): string | undefined {
  const patch = patchOf(object);
  if (patch?.type !== 'json') return undefined;
  try {
    const operations = structuredClone(patch.body) as Operation[];
    const { newDocument } = jsonPatch.applyPatch(structuredClone(object), operations, true);
    return patchOf(newDocument) === undefined ? undefined : 'the patch would leave something behind';
  } catch (error) {
    return `the patch would not apply: ${error instanceof Error ? error.name : String(error)}`;
  }
}
