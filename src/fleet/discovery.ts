/**
 * Finds agents: the EndpointSlices of their Service, which alone tell their nodes, or a list of URLs. And which of
 * them owns a repository.
 */
import type { EndpointSlice } from '../kube/api/objects.ts';
import type { Reflector } from '../kube/watch/reflector.ts';
import { fnv1a } from '../names/hash.ts';
import { joinHostPort } from '../names/host-port.ts';

export interface AgentAddress {
  /** `https://host:port`. */
  readonly url: string;
  /** Node it runs on, where discovery knows. */
  readonly node?: string;
}

export interface Discovery {
  /** The agents now; may be empty. */
  readonly current: () => readonly AgentAddress[];
  /** Resolves when the first answer is there, at the latest when `signal` aborts. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
  readonly onChange: (listener: () => void) => void;
}

/** The agents of `--agents https://a:9443,https://b:9443`. One listed twice counts once, and owns no more. */
export function staticDiscovery(urls: readonly string[]): Discovery {
  const agents = [...new Set(urls.map((url) => new URL(url).origin))].map((url) => ({ url }));
  return { current: () => agents, ready: () => Promise.resolve(), onChange: () => undefined };
}

/** A discovery over a watch of EndpointSlices. @param portName in the agents' Service */
export function endpointSliceDiscovery(
  slices: Pick<Reflector<EndpointSlice>, 'values' | 'ready' | 'onChange'>,
  portName: string,
): Discovery {
  return {
    current: () => agentsOf(slices.values(), portName),
    ready: (signal) => slices.ready(signal).catch(() => undefined),
    onChange: (listener) => slices.onChange(listener),
  };
}

/**
 * The agents in these slices. As the API defines, an unset `ready` counts as ready, and FQDN addresses are not
 * used (kubernetes api/discovery/v1 types.go). A node counts once: dual-stack clusters have a slice for each
 * family, and while the API server moves endpoints a node may be in two slices of one.
 */
export function agentsOf(slices: Iterable<EndpointSlice>, portName: string): AgentAddress[] {
  const byNode = new Map<string, AgentAddress>();
  const byFamily = [...slices].sort((a, b) => ((a.addressType ?? '') < (b.addressType ?? '') ? -1 : 1));
  for (const slice of byFamily) {
    if (slice.addressType !== 'IPv4' && slice.addressType !== 'IPv6') continue;
    const port = slice.ports?.find((entry) => entry.name === portName)?.port;
    if (port === undefined) continue;
    for (const { addresses, nodeName, conditions } of slice.endpoints ?? []) {
      const [address] = addresses;
      if (address === undefined || conditions?.ready === false) continue;
      const url = `https://${joinHostPort(address, port)}`;
      const key = nodeName ?? url;
      if (!byNode.has(key)) byNode.set(key, { url, ...(nodeName !== undefined && { node: nodeName }) });
    }
  }
  return [...byNode.values()];
}

/**
 * The order of these agents for each repository (`domain/path`), by rendezvous hashing (Thaler and Ravishankar,
 * "A Name-Based Mapping Scheme for Rendezvous", 1996): the agent with the highest score for a repository owns it.
 * Every webhook computes the same owner, and when an agent leaves only what it owned moves.
 */
export class Ranking {
  readonly #candidates: readonly { readonly agent: AgentAddress; readonly hash: number }[];

  constructor(agents: readonly AgentAddress[]) {
    // The node outlives its agent's address; the URL is used if discovery does not know the node.
    const idOf = ({ node, url }: AgentAddress): string => node ?? url;
    this.#candidates = agents
      .toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
      .map((agent) => ({ agent, hash: fnv1a(idOf(agent)) }));
  }

  /** Agents in the order of lookups: the repository's owner first. */
  order(repository: string): AgentAddress[] {
    const key = fnv1a(repository);
    const byScore = this.#candidates.toSorted((a, b) => mix(key ^ b.hash) - mix(key ^ a.hash));
    return byScore.map(({ agent }) => agent);
  }

  /** The first of `order`, without the cost of sorting: the facts of a large cluster are 100,000. */
  owner(repository: string): AgentAddress | undefined {
    const key = fnv1a(repository);
    let [owner] = this.#candidates;
    for (const each of this.#candidates)
      if (owner && mix(key ^ each.hash) > mix(key ^ owner.hash)) owner = each;
    return owner?.agent;
  }
}

/** The finalizer of MurmurHash3: every bit of the input changes half of the bits of the result. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
