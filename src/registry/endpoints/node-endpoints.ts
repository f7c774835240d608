/**
 * Endpoints of our own configuration together with those of the node's container runtime: `proxies` come first, then what the node
 * would ask. `insecureRegistries` holds for the default host of a namespace wherever that stands in the node's list.
 */
import { createHash } from 'node:crypto';
import type { EndpointSource } from './endpoint.ts';

/**
 * @param own default endpoints with `proxies` (`createDefaultEndpoints`)
 * @param node what the node's runtime would ask; where it fails, so does this, because the node's pull would fail too
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
