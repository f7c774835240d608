/** API paths of any kind, by the API server's discovery. */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';

interface Resources {
  readonly resources: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
  }[];
}

/**
 * The collection of an object.
 * @throws Error if the API server does not have its kind
 */
export async function pathOf(client: KubeClient, object: KubeObject): Promise<string> {
  const { apiVersion = '', kind = '', metadata } = object;
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  // Definitions of custom resources come and go, so nothing is cached.
  const { resources } = await client.get<Resources>(base, { signal: AbortSignal.timeout(30_000) });
  const resource = resources.find((each) => each.kind === kind && !each.name.includes('/'));
  if (resource === undefined) throw new Error(`the API server has no ${kind} in ${apiVersion}`);
  if (!resource.namespaced) return `${base}/${resource.name}`;
  return `${base}/namespaces/${metadata?.namespace ?? 'default'}/${resource.name}`;
}
