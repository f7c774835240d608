/**
 * Objects that the controller and `report --publish` create, besides Lease and events. `archwright clean`
 * removes them. Helm never adopts them, because they lack its labels and annotations.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Patch } from '../../kube/api/client.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { namespacedPath } from '../../kube/api/paths.ts';
import { resourceApiVersion } from '../../policy/resources/placement.ts';
import type { LeaderContext } from '../lead/feature.ts';
import { statusOf, type ResourceStatus } from './conditions.ts';

/** The label of every object that archwright creates. Objects without it belong to others and stay. */
export const ownLabels = { 'app.kubernetes.io/managed-by': 'archwright-controller' } as const;
/** The labels of ConfigMaps and reports, which people look for by the name of the program. */
export const namedLabels = { 'app.kubernetes.io/name': 'archwright', ...ownLabels } as const;

export function isOwn({ metadata }: KubeObject): boolean {
  return Object.entries(ownLabels).every(([key, value]) => metadata?.labels?.[key] === value);
}

/** Reports of OpenReports, which may not be installed. */
export const openReports = namespacedPath('openreports.io/v1alpha1', 'reports');

/**
 * Applies the status of a custom resource (server-side), if it still exists and has another one.
 * @param follows whether the status follows from the one before: an object that changed since is a conflict
 * @throws KubeError
 */
export async function applyStatus(
  { client, signal }: Pick<LeaderContext, 'client' | 'signal'>,
  { kind, path, object }: { readonly kind: string; readonly path: string; readonly object: KubeObject },
  status: ResourceStatus,
  { follows = false } = {},
): Promise<void> {
  if (hasStatus(object, status)) return;
  const { name, namespace, uid, resourceVersion } = object.metadata ?? {};
  // The uid keeps the status of a deleted object from a new one of the same name.
  const metadata = { name, namespace, uid, ...(follows && { resourceVersion }) };
  const body = { apiVersion: resourceApiVersion, kind, metadata, status };
  await ignoring('not-found', client.patch(`${path}/status`, applied(body), { signal }));
}

/** Conditions of other writers do not count. */
function hasStatus(object: KubeObject, status: ResourceStatus): boolean {
  const present = statusOf(object);
  const types = status.conditions.map(({ type }) => type);
  const ours = types.flatMap((type) => present?.conditions?.find((each) => each.type === type) ?? []);
  return isDeepStrictEqual(status, { ...present, conditions: ours });
}

/** Field manager of everything that the controller applies. */
export const fieldManager = 'archwright-controller';

/** Server-side apply: a Role can allow it for one name, and it writes nothing if nothing has changed. */
export function applied(body: object): Patch {
  return { type: 'apply', body, fieldManager };
}
