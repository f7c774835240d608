/** The namespace that archwright runs in, as its Lease says: for a person outside of the cluster who names none. */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';

/** More installations than anybody has. */
const limit = 10;

/**
 * Looks for Leases of a name in every namespace.
 * @returns their namespaces; `undefined` where that may not be asked
 * @throws KubeError for any other reason
 */
export async function namespacesOfLease(
  client: KubeClient,
  leaseName: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  try {
    const { items = [] } = await client.get<{ readonly items?: readonly KubeObject[] }>(paths.leases(), {
      signal,
      query: { fieldSelector: `metadata.name=${leaseName}`, limit },
    });
    return items.flatMap(({ metadata }) => metadata?.namespace ?? []);
  } catch (error) {
    if (error instanceof KubeError && error.code === 'forbidden') return undefined;
    throw error;
  }
}
