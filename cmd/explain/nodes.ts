/** The classes of the cluster's nodes, read once. Reports of agents count if agents look up images. */
import { createNodeClasses } from '../../src/cluster/node-classes.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { Node } from '../../src/kube/api/objects.ts';
import type { Page } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { classify } from '../../src/nodes/classify.ts';
import type { NodeClasses } from '../../src/nodes/node-classes.ts';
import type { PodContext } from '../lookups/pod-context.ts';

/** A node has up to 50 KB, and a cluster 5,000 nodes (Kubernetes, "Considerations for large clusters"). */
const pageSize = 100;
const maxPages = 50;

/** @returns `undefined` without a cluster or without the permission */
export async function readNodeClasses(
  podContext: Pick<PodContext, 'read'>,
  fleet: Pick<Fleet, 'nodeReports'> | undefined,
  stop: AbortSignal,
): Promise<NodeClasses | undefined> {
  const nodes: { readonly classified: ReturnType<typeof classify> }[] = [];
  let token = '';
  for (let page = 0; page < maxPages; page += 1) {
    const query = { limit: pageSize, ...(token !== '' && { continue: token }) };
    const list = await podContext.read<Page<Node>>(paths.nodes(), stop, query);
    for (const node of list?.items ?? []) nodes.push({ classified: classify(node) });
    token = list?.metadata?.continue ?? '';
    if (token === '') break;
  }
  const reports = fleet && (() => fleet.nodeReports());
  return createNodeClasses({ values: () => nodes, onEach: () => undefined }, reports)();
}
