/** The namespace that archwright runs in, found by its Lease: for a user outside of the cluster who names none. */
import { ignoring } from '../../kube/api/errors.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { Page } from '../../kube/api/pages.ts';

/** More installations than a cluster has. */
const limit = 10;

/**
 * Looks for Leases of a name in every namespace.
 * @returns their namespaces; `undefined`: Leases may not be listed
 * @throws KubeError for any other reason
 */
export async function namespacesOfLease(
  client: KubeClient,
  leaseName: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const query = { fieldSelector: `metadata.name=${leaseName}`, limit };
  const page = await ignoring('forbidden', client.get<Page<KubeObject>>(paths.leases(), { signal, query }));
  return page && (page.items ?? []).flatMap(({ metadata }) => metadata?.namespace ?? []);
}
