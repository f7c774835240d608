/**
 * The nodes that an agent answers for, by `kubernetes.io/hostname`: its own node. With agents on chosen nodes
 * (`agentNodes`), also the nodes of its pool that have no agent.
 */
import { keys } from '../names/keys.ts';
import { poolOf } from '../names/node-pool.ts';

export interface PooledNode {
  readonly hostname: string | undefined;
  readonly pool: string;
  /** Whether the controller chose it for an agent. */
  readonly isChosen: boolean;
}

export type NodeHostnames = (node: string) => readonly string[];

type Labels = Readonly<Record<string, string>>;

export function pooledNode(labels: Labels = {}, share: <T>(value: T) => T = (value) => value): PooledNode {
  return {
    hostname: labels[keys.hostnameLabel],
    pool: share(poolOf(labels)),
    isChosen: labels[keys.agentNode] === 'true',
  };
}

interface Nodes {
  get(namespace: string, name: string): PooledNode | undefined;
  values(): Iterable<PooledNode>;
  onChange(listener: () => void): void;
}

/** An unknown node, or one without the label, has its name as hostname. */
export function createNodeHostnames(nodes: Nodes): NodeHostnames {
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
