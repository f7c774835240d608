/**
 * The finalizer of `ClusterPodPlacementConfig/cluster`: a deleted object stays until no pod waits behind our gate. Guarded JSON patches
 * add and remove it, so other controllers' finalizers stay.
 */
import type { ObjectMeta } from '../../kube/api/objects.ts';
import { guardedPatch } from '../../kube/api/change.ts';
import type { Patch } from '../../kube/api/client.ts';

export const gatesFinalizer = 'arch.example/gates';

export function hasFinalizer(metadata: ObjectMeta | undefined): boolean {
  return metadata?.finalizers?.includes(gatesFinalizer) ?? false;
}

/** The patch for an object without the finalizer. */
export function addFinalizer(metadata: ObjectMeta): Patch {
  const { finalizers } = metadata;
  const add =
    finalizers === undefined || finalizers.length === 0
      ? { op: 'add', path: '/metadata/finalizers', value: [gatesFinalizer] }
      : { op: 'add', path: '/metadata/finalizers/-', value: gatesFinalizer };
  return guardedPatch({ metadata }, [add]);
}

/** The patch for an object with the finalizer. */
export function removeFinalizer(metadata: ObjectMeta): Patch {
  const { finalizers = [] } = metadata;
  const path = `/metadata/finalizers/${finalizers.indexOf(gatesFinalizer)}`;
  return guardedPatch({ metadata }, [{ op: 'remove', path }]);
}
