/**
 * Reads and writes our Secrets. An existing one is changed by a guarded merge patch. A missing one is created by server-side apply, which a
 * Role can allow for one name (measured with `resourceNames`), unlike a plain creation. A Secret that was created since it was read is not
 * overwritten.
 */
import type { KubeClient } from '../../kube/api/client.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { Secret } from '../../kube/api/objects.ts';
import { fieldManager, ownLabels } from '../own-objects.ts';
import type { SecretTexts } from './authorities.ts';
import { paths } from '../../kube/api/paths.ts';

export interface FoundSecret {
  readonly resourceVersion: string;
  readonly texts: SecretTexts;
}

export interface Secrets {
  /**
   * @returns `undefined`: it does not exist
   * @throws KubeError
   */
  read(name: string): Promise<FoundSecret | undefined>;
  /**
   * Creates a Secret without content, or reads the existing one.
   * @throws KubeError
   */
  prepare(name: string): Promise<FoundSecret>;
  /**
   * Creates a Secret of type `kubernetes.io/tls`.
   * @throws KubeError, `conflict` if there is one by now
   */
  createTls(name: string, texts: SecretTexts): Promise<void>;
  /**
   * Changes some keys; `null` removes one.
   * @throws KubeError, `conflict` if it changed since it was read
   */
  change(
    name: string,
    resourceVersion: string,
    texts: Readonly<Record<string, string | null>>,
  ): Promise<void>;
}

/**
 * The version of no object: etcd counts from 1, which is the empty store. An apply with it creates a missing object, and is a conflict with an
 * existing one (measured with Kubernetes 1.30 and 1.36).
 */
const versionOfNone = '1';

export function createSecrets(client: KubeClient, namespace: string, signal: AbortSignal): Secrets {
  const path = (name: string): string => paths.secrets(namespace, name);

  function apply(
    name: string,
    type: string,
    more: { readonly resourceVersion?: string; readonly data?: Readonly<Record<string, string>> } = {},
  ): Promise<Secret> {
    const { resourceVersion, data } = more;
    const metadata = { name, namespace, labels: ownLabels, ...(resourceVersion && { resourceVersion }) };
    const body = { apiVersion: 'v1', kind: 'Secret', metadata, type, ...(data && { data }) };
    return client.patch<Secret>(path(name), { type: 'apply', body, fieldManager, force: true }, { signal });
  }

  return {
    read: async (name) => {
      const secret = await ignoring('not-found', client.get<Secret>(path(name), { signal }));
      return secret && found(secret);
    },
    prepare: async (name) => found(await apply(name, 'Opaque')),
    createTls: async (name, texts) => {
      await apply(name, 'kubernetes.io/tls', { resourceVersion: versionOfNone, data: encoded(texts) });
    },
    change: async (name, resourceVersion, texts) => {
      const body = { metadata: { resourceVersion, labels: ownLabels }, data: encoded(texts) };
      await client.patch(path(name), { type: 'merge', body }, { signal, query: { fieldManager } });
    },
  };
}

function found({ metadata, data = {} }: Secret): FoundSecret {
  const texts = Object.entries(data).map(([key, value]) => [
    key,
    Buffer.from(value, 'base64').toString('utf8'),
  ]);
  return {
    resourceVersion: metadata?.resourceVersion ?? '',
    texts: Object.fromEntries(texts) as SecretTexts,
  };
}

function encoded<T extends string | null>(texts: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [
      key,
      text === null ? null : Buffer.from(text).toString('base64'),
    ]),
  ) as Readonly<Record<string, T>>;
}
