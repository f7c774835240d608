/**
 * Reads and writes our Secrets. A guarded merge patch changes an existing one. Server-side apply creates a
 * missing one: unlike a plain creation, a Role can allow it for one name (measured with `resourceNames`). A
 * Secret created since it was read is not overwritten. Every method throws KubeError.
 */
import { ignoring } from '../../kube/api/errors.ts';
import type { Secret } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { SecretChange, SecretTexts } from '../../certificates/authorities.ts';
import type { LeaderContext } from '../lead/leader-context.ts';
import { applied, fieldManager, ownLabels } from './own-objects.ts';

export interface FoundSecret {
  readonly resourceVersion: string;
  readonly texts: SecretTexts;
}

/**
 * The version of no object: etcd counts from 1, the empty store. An apply with it creates a missing object,
 * and conflicts with an existing one (measured with Kubernetes 1.30 and 1.36).
 */
const versionOfNone = '1';

export class Secrets {
  readonly #leader: Pick<LeaderContext, 'client' | 'namespace' | 'signal'>;

  constructor(leader: Pick<LeaderContext, 'client' | 'namespace' | 'signal'>) {
    this.#leader = leader;
  }

  /** @returns `undefined`: it does not exist */
  async read(name: string): Promise<FoundSecret | undefined> {
    const { client, namespace, signal } = this.#leader;
    const path = paths.secrets(namespace, name);
    const secret = await ignoring('not-found', client.get<Secret>(path, { signal }));
    return secret && found(secret);
  }

  async prepare(name: string): Promise<FoundSecret> {
    return found(await this.#apply(name, {}, { type: 'Opaque' }));
  }

  /** Creates a Secret; a conflict if there is one by now. */
  async create(name: string, type: 'kubernetes.io/tls' | 'Opaque', texts: SecretTexts): Promise<void> {
    await this.#apply(name, { resourceVersion: versionOfNone }, { type, data: encoded(texts) });
  }

  async change(name: string, resourceVersion: string, texts: SecretChange): Promise<void> {
    const { client, namespace, signal } = this.#leader;
    const body = { metadata: { resourceVersion, labels: ownLabels }, data: encoded(texts) };
    const options = { signal, query: { fieldManager } };
    await client.patch(paths.secrets(namespace, name), { type: 'merge', body }, options);
  }

  #apply(name: string, version: object, content: object): Promise<Secret> {
    const { client, namespace, signal } = this.#leader;
    const metadata = { name, namespace, labels: ownLabels, ...version };
    const body = { apiVersion: 'v1', kind: 'Secret', metadata, ...content };
    return client.patch(paths.secrets(namespace, name), applied(body), { signal });
  }
}

function found({ metadata, data = {} }: Secret): FoundSecret {
  const texts = Object.entries(data).map(([key, value]): [string, string] => {
    return [key, Buffer.from(value, 'base64').toString('utf8')];
  });
  return { resourceVersion: metadata?.resourceVersion ?? '', texts: Object.fromEntries(texts) };
}

function encoded(texts: SecretChange): SecretChange {
  const entries = Object.entries(texts).map(([key, text]): [string, string | null] => {
    return [key, text === null ? null : Buffer.from(text).toString('base64')];
  });
  return Object.fromEntries(entries);
}
