/**
 * The finalizer of `ClusterPodPlacementConfig/cluster`: who deletes it wants no more gates, and it stays until the last one
 * is open. Put on and taken off by JSON patches that the resource version guards, so that finalizers of others stay.
 */
import type { ObjectMeta } from '../../kube/api/objects.ts';
import type { Patch } from '../../kube/api/client.ts';

export const gatesFinalizer = 'arch.example/gates';

export function hasFinalizer(metadata: ObjectMeta | undefined): boolean {
  return metadata?.finalizers?.includes(gatesFinalizer) ?? false;
}

/** @returns a patch that puts the finalizer on an object that has it not */
export function addFinalizer({ resourceVersion, finalizers }: ObjectMeta): Patch {
  const add =
    finalizers === undefined || finalizers.length === 0
      ? { op: 'add', path: '/metadata/finalizers', value: [gatesFinalizer] }
      : { op: 'add', path: '/metadata/finalizers/-', value: gatesFinalizer };
  return { type: 'json', body: [guard(resourceVersion), add] };
}

/** @returns a patch that takes the finalizer off an object that has it */
export function removeFinalizer({ resourceVersion, finalizers = [] }: ObjectMeta): Patch {
  const path = `/metadata/finalizers/${finalizers.indexOf(gatesFinalizer)}`;
  return { type: 'json', body: [guard(resourceVersion), { op: 'remove', path }] };
}

/** Where the object changed since it was read, the API server answers 409. */
function guard(resourceVersion: string | undefined): object {
  return { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion };
}
