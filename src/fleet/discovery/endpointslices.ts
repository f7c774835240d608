/**
 * Agents from the EndpointSlices of their Service, kept by a watch: the only discovery that knows which node an agent
 * runs on. The watch is the caller's, limited to the Service by the label `kubernetes.io/service-name`.
 */
import type { Reflector } from '../../kube/watch/reflector.ts';
import type { EndpointSlice } from '../../kube/api/objects.ts';
import { agentUrl } from './agent-url.ts';
import { createChanges } from './changes.ts';
import type { AgentAddress, Discovery } from './discovery.ts';

export interface EndpointSliceDiscoveryOptions {
  readonly slices: Reflector<EndpointSlice>;
  /** Name of the port of the agents' Service. */
  readonly portName: string;
}

/** Makes a discovery over a watch, which it does not stop. */
export function endpointSliceDiscovery(options: EndpointSliceDiscoveryOptions): Discovery {
  const changes = createChanges();
  const update = (): void => changes.set(agentsOf(options.slices.values(), options.portName));
  let closed = false;
  options.slices.onChange(() => {
    if (!closed) update();
  });
  return {
    current: changes.current,
    ready: async (signal) => {
      await options.slices.ready(signal).catch(() => undefined);
      if (!signal.aborted && !closed) update();
    },
    onChange: changes.onChange,
    close: () => {
      closed = true;
      changes.close();
    },
  };
}

/**
 * The agents in these slices. An unset `ready` counts as ready, and addresses of the type FQDN are left out, as the
 * API says (kubernetes api/discovery/v1 types.go). A node counts once: in a dual-stack cluster its agent is in a slice of each family,
 * and while the API server moves endpoints it may be in two slices of one.
 */
export function agentsOf(slices: Iterable<EndpointSlice>, portName: string): AgentAddress[] {
  const byNode = new Map<string, AgentAddress>();
  const byFamily = [...slices].sort((a, b) => ((a.addressType ?? '') < (b.addressType ?? '') ? -1 : 1));
  for (const slice of byFamily) {
    if (slice.addressType !== 'IPv4' && slice.addressType !== 'IPv6') continue;
    const port = slice.ports?.find((entry) => entry.name === portName)?.port;
    if (port === undefined) continue;
    for (const endpoint of slice.endpoints ?? []) {
      const address = endpoint.addresses[0];
      if (address === undefined || endpoint.conditions?.ready === false) continue;
      const url = agentUrl(address, port);
      const key = endpoint.nodeName ?? url;
      if (byNode.has(key)) continue;
      byNode.set(key, endpoint.nodeName === undefined ? { url } : { url, node: endpoint.nodeName });
    }
  }
  return [...byNode.values()];
}
