/**
 * Whether a pod that chooses among nodes by their labels would find one. Labels are not kept in memory: few pods are moved,
 * and few of those choose.
 */
import type { KubeClient, Query } from '../../kube/client.ts';
import type { Node } from '../../kube/objects.ts';

interface Page {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly Node[];
}

/** Nodes are large, up to 50 KB each, and the first one usually does. */
const pageSize = 20;

/**
 * Looks for one.
 * @param nodes names of those that are possible
 * @param selectors label selectors; one has to fit
 * @throws KubeError
 */
export async function hasChosenNode(
  nodes: ReadonlySet<string>,
  selectors: readonly string[],
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<boolean> {
  for (const labelSelector of selectors) {
    let token = '';
    do {
      const query: Query = { limit: pageSize, labelSelector, ...(token !== '' && { continue: token }) };
      const page = await client.get<Page>('/api/v1/nodes', { signal, query });
      if (page.items?.some(({ metadata }) => nodes.has(metadata?.name ?? ''))) return true;
      token = page.metadata?.continue ?? '';
    } while (token !== '');
  }
  return false;
}
