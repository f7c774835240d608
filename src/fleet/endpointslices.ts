/**
 * Agents from the EndpointSlices of their Service, kept by a watch: the only discovery that knows which node
 * an agent runs on. The watch is the caller's, limited to the Service by the label
 * `kubernetes.io/service-name`.
 */
import type { Reflector } from '../kube/watch/reflector.ts';
import type { EndpointSlice } from '../kube/api/objects.ts';
import { agentUrl, createAgentList, type AgentAddress, type Discovery } from './discovery.ts';

/** A discovery over a watch, which it does not stop. @param portName in the agents' Service */
export function endpointSliceDiscovery(slices: Reflector<EndpointSlice>, portName: string): Discovery {
  const agents = createAgentList();
  let closed = false;
  const update = (): void => {
    if (!closed) agents.set(agentsOf(slices.values(), portName));
  };
  slices.onChange(update);
  return {
    ...agents,
    ready: async (signal) => {
      await slices.ready(signal).catch(() => undefined);
      if (!signal.aborted) update();
    },
    close: () => {
      closed = true;
      agents.close();
    },
  };
}

/**
 * The agents in these slices. An unset `ready` counts as ready, and addresses of the type FQDN are left out,
 * as the API defines (kubernetes api/discovery/v1 types.go). A node counts once: in a dual-stack cluster its
 * agent is in a slice of each family, and while the API server moves endpoints it may be in two slices of
 * one.
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
