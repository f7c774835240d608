/** Finds agents: the EndpointSlices of their Service, which alone tell their nodes, or a list of URLs. */
import type { EndpointSlice } from '../kube/api/objects.ts';
import type { Reflector } from '../kube/watch/reflector.ts';
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
