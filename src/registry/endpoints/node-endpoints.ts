/**
 * Configured endpoints together with those of the node's container runtime: `proxies` first, then the node's. `insecureRegistries`
 * applies to the default host of a namespace, at any place in the node's list.
 */
import { createHash } from 'node:crypto';
import type { EndpointSource } from './endpoint.ts';

/**
 * @param own default endpoints with `proxies` (`createDefaultEndpoints`)
 * @param node endpoints of the node's runtime; its failures are passed on, because the node's pull would fail too
 */
export function withNodeEndpoints(own: EndpointSource, node: EndpointSource): EndpointSource {
  return {
    endpoints: async (namespace) => {
      const [configured, found] = await Promise.all([own.endpoints(namespace), node.endpoints(namespace)]);
      const proxies = configured.filter(({ origin }) => origin === 'proxies');
      const insecure = configured.find(({ origin }) => origin === 'insecureRegistries');
      return [
        ...proxies,
        ...found.map((endpoint) => (insecure && endpoint.origin === 'default' ? insecure : endpoint)),
      ];
    },
    fingerprint: () =>
      createHash('sha256')
        .update(JSON.stringify([own.fingerprint(), node.fingerprint()]))
        .digest('hex'),
  };
}
