/** What decisions need of the cluster's nodes: their classes, and the nodes that an agent answers for. */
import type { Reflector } from '../kube/watch/reflector.ts';
import { keys } from '../names/keys.ts';
import { poolOf } from '../names/node-pool.ts';
import type { ClassifiedNode } from '../nodes/classify.ts';
import { groupByClass, type NodeClasses } from '../nodes/node-classes.ts';
import type { NodeReport } from '../nodes/node-report.ts';

/** The classes now; `undefined` while no node is known. */
export type CurrentNodeClasses = () => NodeClasses | undefined;

const noReports: ReadonlyMap<string, NodeReport> = new Map();

/** Groups again only after a node's class, hostname or report changed. Equal classes: same object. */
export function createNodeClasses(
  nodes: Pick<Reflector<{ readonly classified: ClassifiedNode | undefined }>, 'values' | 'onEach'>,
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

export type PooledNode = Readonly<ReturnType<typeof pooledNode>>;

export type NodeHostnames = (node: string) => readonly string[];

type Labels = Readonly<Record<string, string>>;

export function pooledNode(labels: Labels = {}, share: <T>(value: T) => T = (value) => value) {
  return {
    hostname: labels[keys.hostnameLabel],
    pool: share(poolOf(labels)),
    /** Whether the controller chose it for an agent. */
    isChosen: labels[keys.agentNode] === 'true',
  };
}

/**
 * The nodes that an agent answers for, by `kubernetes.io/hostname`: its own node. With agents on chosen nodes
 * (`agentNodes`), also the nodes of its pool that have no agent. An unknown node, or one without the label, has its name as
 * hostname.
 */
export function createNodeHostnames(
  nodes: Pick<Reflector<PooledNode>, 'get' | 'values' | 'onChange'>,
): NodeHostnames {
  let withoutAgent: ReadonlyMap<string, readonly string[]> | undefined;
  nodes.onChange(() => (withoutAgent = undefined));
  return (name) => {
    const node = nodes.get('', name);
    const own = node?.hostname ?? name;
    if (!node?.isChosen) return [own];
    withoutAgent ??= byPool(nodes.values());
    return [own, ...(withoutAgent.get(node.pool) ?? [])];
  };
}

function byPool(nodes: Iterable<PooledNode>): ReadonlyMap<string, readonly string[]> {
  const others = [...nodes].filter(({ isChosen, hostname }) => !isChosen && hostname !== undefined);
  const pools = Map.groupBy(others, ({ pool }) => pool);
  return new Map([...pools].map(([pool, all]) => [pool, all.map(({ hostname }) => hostname ?? '')]));
}
