/** The classes of the cluster's nodes, from a watch on the nodes and the reports of their agents. */
import type { Reflector } from '../kube/watch/reflector.ts';
import type { ClassifiedNode } from '../nodes/classify.ts';
import { groupByClass, type NodeClasses } from '../nodes/node-classes.ts';
import type { NodeReport } from '../nodes/node-report.ts';

interface Watched {
  readonly classified: ClassifiedNode | undefined;
}

/** The classes now; `undefined` while no node is known. */
export type CurrentNodeClasses = () => NodeClasses | undefined;

const noReports: ReadonlyMap<string, NodeReport> = new Map();

/** Groups again only after a node's class, hostname or report changed. Equal classes: same object. */
export function createNodeClasses(
  nodes: Pick<Reflector<Watched>, 'values' | 'onEach'>,
  reports: () => ReadonlyMap<string, NodeReport> = () => noReports,
): CurrentNodeClasses {
  let current: { readonly classes: NodeClasses; readonly text: string } | undefined;
  let reported = noReports;
  let isDue = true;
  nodes.onEach(({ object, previous }) => {
    isDue ||= JSON.stringify(object?.classified) !== JSON.stringify(previous?.classified);
  });
  return () => {
    const now = reports();
    if (isDue || now !== reported) {
      isDue = false;
      reported = now;
      const classified = [...nodes.values()].flatMap((node) => node.classified ?? []);
      const classes = groupByClass(classified, now);
      const text = JSON.stringify([...classes]);
      if (text !== current?.text) current = { classes, text };
    }
    return current?.classes.size ? current.classes : undefined;
  };
}
