/** Changes objects without losing other writes: every patch carries its object's version. */
import { concurrently } from '../../async/concurrently.ts';
import type { KubeClient, Patch } from './client.ts';
import { KubeError } from './errors.ts';
import type { KubeObject } from './objects.ts';
import { paths } from './paths.ts';

/** Others change an object a few times a minute at most: a kubelet its node, a controller its pod. */
const tries = 5;
/** Few, so that more urgent writes, which share the limiter, come first. */
const workers = 4;

/** A JSON patch that the API server refuses with `conflict` if the object changed since it was read. */
export function guardedPatch({ metadata }: KubeObject, operations: readonly object[]): Patch {
  const version = {
    op: 'replace',
    path: '/metadata/resourceVersion',
    value: metadata?.resourceVersion ?? '',
  };
  return { type: 'json', body: [version, ...operations] };
}

/** A merge patch of this label alone; other labels stay, even after a concurrent change. */
export function labelPatch(key: string, value: string | null): Patch {
  return { type: 'merge', body: { metadata: { labels: { [key]: value } } } };
}

/**
 * Reads an object and changes it; starts again after a conflict.
 * @param patchOf makes a guarded patch; `undefined`: nothing to change
 * @param read the object from an earlier read, which saves the first one
 * @returns whether it was changed; a missing object needs no change
 * @throws KubeError, `conflict` after several of them in a row
 */
export async function changeObject<T extends KubeObject>(
  client: KubeClient,
  path: string,
  patchOf: (object: T) => Patch | undefined,
  { signal, read }: { readonly signal: AbortSignal; readonly read?: T },
): Promise<boolean> {
  let object = read;
  for (let left = tries; ; left -= 1) {
    try {
      const patch = patchOf((object ??= await client.get<T>(path, { signal })));
      if (patch === undefined) return false;
      await client.patch(path, patch, { signal });
      return true;
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 'not-found') return false;
      if (error.code !== 'conflict' || left === 1) throw error;
      object = undefined;
    }
  }
}

/**
 * Changes several objects, a few at a time. A refused change does not stop the others.
 * @param change returns whether the object was changed
 * @returns how many were changed, and the errors of those that were refused
 * @throws KubeError at once if it is temporary
 */
export async function changeEach<T>(
  objects: readonly T[],
  change: (object: T) => Promise<boolean>,
  signal: AbortSignal,
): Promise<{ readonly count: number; readonly refused: readonly KubeError[] }> {
  const refused: KubeError[] = [];
  const changed = await concurrently(objects, workers, async (object) => {
    signal.throwIfAborted();
    try {
      return await change(object);
    } catch (error) {
      if (!(error instanceof KubeError) || error.temporary) throw error;
      refused.push(error);
      return false;
    }
  });
  return { count: changed.filter(Boolean).length, refused };
}

/**
 * Requests the eviction of one pod.
 * @param preconditions evict only this UID, in this version
 * @throws KubeError, `too-many-requests` if a budget forbids it now, `conflict` if a precondition fails
 */
export async function evictPod(
  client: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  preconditions: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const metadata = { namespace, name };
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata, deleteOptions: { preconditions } };
  await client.create(`${paths.pods(namespace, name)}/eviction`, eviction, { signal });
}
