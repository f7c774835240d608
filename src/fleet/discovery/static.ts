/** Agents that are written down: `--agents https://a:9443,https://b:9443`. */
import { parseAgentUrl } from './agent-url.ts';
import type { Discovery } from './discovery.ts';

/**
 * Makes a discovery that never changes. Doubles are left out: an agent listed twice would own twice as much.
 * @throws TypeError where a URL is not `https://host:port`
 */
export function staticDiscovery(urls: readonly string[]): Discovery {
  const agents = [...new Set(urls.map(parseAgentUrl))].map((url) => ({ url }));
  return {
    current: () => agents,
    ready: () => Promise.resolve(),
    onChange: () => {},
    close: () => {},
  };
}
