/**
 * Reads and writes our Secrets. A guarded merge patch changes an existing one. Server-side apply creates a
 * missing one: unlike a plain creation, a Role can allow it for one name (measured with `resourceNames`).
 */
import { ignoring } from '../../kube/api/errors.ts';
import type { Secret } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { SecretChange, SecretTexts } from '../../certificates/authorities.ts';
import type { LeaderContext } from '../lead/feature.ts';
import { applied, fieldManager, ownLabels } from './own-objects.ts';

type Leader = Pick<LeaderContext, 'client' | 'namespace' | 'signal'>;

export interface FoundSecret {
  readonly resourceVersion: string;
  readonly texts: SecretTexts;
}

/**
 * The version of no object: etcd counts from 1, the empty store. An apply with it creates a missing object,
 * and conflicts with an existing one (measured with Kubernetes 1.30 and 1.36).
 */
const versionOfNone = '1';

/** @returns `undefined`: it does not exist. @throws KubeError */
export async function readSecret(
  { client, namespace, signal }: Leader,
  name: string,
): Promise<FoundSecret | undefined> {
  const secret = await ignoring('not-found', client.get<Secret>(paths.secrets(namespace, name), { signal }));
  if (secret === undefined) return undefined;
  const texts = Object.entries(secret.data ?? {}).map(([key, value]): [string, string] => {
    return [key, Buffer.from(value, 'base64').toString('utf8')];
  });
  return { resourceVersion: secret.metadata?.resourceVersion ?? '', texts: Object.fromEntries(texts) };
}

/**
 * Changes a Secret, or creates a missing one.
 * @param resourceVersion when it was read; `undefined`: it did not exist
 * @throws KubeError `conflict` if it has changed, or was created, since then
 */
export async function writeSecret(
  { client, namespace, signal }: Leader,
  { name, type }: { readonly name: string; readonly type: 'kubernetes.io/tls' | 'Opaque' },
  resourceVersion: string | undefined,
  texts: SecretChange,
): Promise<void> {
  const path = paths.secrets(namespace, name);
  const entries = Object.entries(texts).map(([key, text]): [string, string | null] => {
    return [key, text && Buffer.from(text).toString('base64')];
  });
  if (resourceVersion === undefined) {
    const metadata = { name, namespace, labels: ownLabels, resourceVersion: versionOfNone };
    const data = Object.fromEntries(entries.filter(([, text]) => text !== null));
    await client.patch(path, applied({ apiVersion: 'v1', kind: 'Secret', metadata, type, data }), { signal });
  } else {
    const body = { metadata: { resourceVersion, labels: ownLabels }, data: Object.fromEntries(entries) };
    await client.patch(path, { type: 'merge', body }, { signal, query: { fieldManager } });
  }
}
