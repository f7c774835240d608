/**
 * archwright's own Secrets, and its notes in ConfigMaps, one key each. A guarded merge patch changes an existing
 * object, so two concurrent writers lose nothing. Server-side apply creates a missing one: unlike a plain
 * creation, a Role can allow it for one name (measured with `resourceNames`).
 */
import type { SecretChange, SecretTexts } from '../../certificates/authorities.ts';
import { ignoring, isCode } from '../../kube/api/errors.ts';
import { secretText, type ConfigMap, type Secret } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { LeaderContext } from '../lead/feature.ts';
import { applied, fieldManager, namedLabels, ownLabels } from './own-objects.ts';

type Leader = Pick<LeaderContext, 'client' | 'namespace' | 'signal'>;

export interface FoundSecret {
  readonly resourceVersion: string;
  readonly texts: SecretTexts;
}

/** @returns `undefined`: it does not exist. @throws KubeError */
export async function readSecret(
  { client, namespace, signal }: Leader,
  name: string,
): Promise<FoundSecret | undefined> {
  const secret = await ignoring('not-found', client.get<Secret>(paths.secrets(namespace, name), { signal }));
  if (secret === undefined) return undefined;
  const texts = Object.keys(secret.data ?? {}).map((key) => [key, secretText(secret, key)] as const);
  return { resourceVersion: secret.metadata?.resourceVersion ?? '', texts: Object.fromEntries(texts) };
}

/**
 * Changes a Secret, or creates a missing one.
 * @param resourceVersion when it was read; `undefined`: it did not exist
 * @throws KubeError `conflict` if it has changed, or was created, since then
 */
export async function writeSecret(
  leader: Leader,
  { name, type }: { readonly name: string; readonly type: 'kubernetes.io/tls' | 'Opaque' },
  resourceVersion: string | undefined,
  texts: SecretChange,
): Promise<void> {
  const data = Object.entries(texts).map(([key, text]): [string, string | null] => {
    return [key, text && Buffer.from(text).toString('base64')];
  });
  await write(leader, { kind: 'Secret', name, type }, resourceVersion, Object.fromEntries(data));
}

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
 * Changes the notes as they are now; starts again after a conflict. The first note creates the ConfigMap.
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
      const before = present?.data ?? {};
      const [wanted, result] = decide(before);
      const changed = Object.entries(wanted).filter(([key, text]) => text !== before[key]);
      const data: Record<string, string | null> = Object.fromEntries(changed);
      for (const key of Object.keys(before)) if (!Object.hasOwn(wanted, key)) data[key] = null;
      if (Object.keys(data).length > 0)
        await write(leader, { kind: 'ConfigMap', name }, present?.metadata?.resourceVersion, data);
      return result;
    } catch (error) {
      if (!isCode(error, 'conflict') || left === 1) throw error;
    }
  }
}

/**
 * The version of no object: etcd counts from 1, the empty store. An apply with it creates a missing object,
 * and conflicts with an existing one (measured with Kubernetes 1.30 and 1.36).
 */
const versionOfNone = '1';

/** @param data `null` removes a key */
async function write(
  { client, namespace, signal }: Leader,
  {
    kind,
    name,
    ...type
  }: { readonly kind: 'Secret' | 'ConfigMap'; readonly name: string; readonly type?: string },
  resourceVersion: string | undefined,
  data: Readonly<Record<string, string | null>>,
): Promise<void> {
  const [pathOf, labels] = kind === 'Secret' ? [paths.secrets, ownLabels] : [paths.configMaps, namedLabels];
  const path = pathOf(namespace, name);
  if (resourceVersion === undefined) {
    const metadata = { name, namespace, labels, resourceVersion: versionOfNone };
    const texts = Object.fromEntries(Object.entries(data).filter(([, text]) => text !== null));
    const object = { apiVersion: 'v1', kind, metadata, ...type, data: texts };
    await client.patch(path, applied(object), { signal });
  } else {
    const body = { metadata: { resourceVersion, labels }, data };
    await client.patch(path, { type: 'merge', body }, { signal, query: { fieldManager } });
  }
}
