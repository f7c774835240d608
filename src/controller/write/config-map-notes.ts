/**
 * Notes in a ConfigMap of our own namespace, one key each; the first note creates it. Every write is guarded
 * by the version that it was made from, so two concurrent writers lose nothing.
 */
import { ignoring, isCode } from '../../kube/api/errors.ts';
import type { ConfigMap } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { LeaderContext } from '../lead/feature.ts';
import { namedLabels } from './own-objects.ts';

type Leader = Pick<LeaderContext, 'client' | 'namespace' | 'signal'>;

export type NotesData = Readonly<Record<string, string>>;

/** Few writers can be under way at the same time, and each conflict means that one of them is done. */
const tries = 5;

/** @returns `undefined`: there is no ConfigMap. @throws KubeError */
export function getNotes(
  { client, namespace, signal }: Leader,
  name: string,
): Promise<ConfigMap | undefined> {
  return ignoring('not-found', client.get<ConfigMap>(paths.configMaps(namespace, name), { signal }));
}

/**
 * Changes the notes as they are now; starts again after a conflict.
 * @param decide returns all notes that there should be, and a result
 * @throws KubeError
 */
export async function changeNotes<T>(
  leader: Leader,
  name: string,
  decide: (data: NotesData) => readonly [wanted: NotesData, result: T],
): Promise<T> {
  for (let left = tries; ; left -= 1) {
    try {
      const present = await getNotes(leader, name);
      const [wanted, result] = decide(present?.data ?? {});
      await write(leader, name, present, wanted);
      return result;
    } catch (error) {
      if (!isCode(error, 'conflict') || left === 1) throw error;
    }
  }
}

async function write(
  { client, namespace, signal }: Leader,
  name: string,
  present: ConfigMap | undefined,
  wanted: NotesData,
): Promise<void> {
  const before = present?.data ?? {};
  const changed = Object.entries(wanted).filter(([key, text]) => text !== before[key]);
  const data: Record<string, string | null> = Object.fromEntries(changed);
  for (const key of Object.keys(before)) if (!Object.hasOwn(wanted, key)) data[key] = null;
  if (Object.keys(data).length === 0) return;
  if (present !== undefined) {
    const { resourceVersion } = present.metadata ?? {};
    const body = { metadata: { resourceVersion }, data };
    await client.patch(paths.configMaps(namespace, name), { type: 'merge', body }, { signal });
    return;
  }
  const metadata = { name, namespace, labels: namedLabels };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  await client.create(paths.configMaps(namespace), object, { signal });
}
