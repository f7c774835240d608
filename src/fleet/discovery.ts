/** Finds agents: a list of URLs, DNS, or EndpointSlices. */
import { joinHostPort } from '../names/host-port.ts';
import { unlessAborted } from '../async/wait.ts';

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
  readonly close: () => void;
}

/** Clusters have up to 5,000 nodes ("Considerations for large clusters"); more agents are ignored. */
export const maxAgents = 5000;

/** An empty discovery that `set` fills. Its listeners run only if a list differs from the last one. */
export function createAgentList(): Discovery & { readonly set: (agents: readonly AgentAddress[]) => void } {
  const listeners = new Set<() => void>();
  const first = Promise.withResolvers<void>();
  let agents: readonly AgentAddress[] = [];
  return {
    set: (found) => {
      const before = JSON.stringify(agents);
      agents = found.toSorted((a, b) => (a.url < b.url ? -1 : 1)).slice(0, maxAgents);
      first.resolve();
      if (JSON.stringify(agents) !== before) for (const listener of listeners) listener();
    },
    current: () => agents,
    ready: (signal) => unlessAborted(first.promise, signal).catch(() => undefined),
    onChange: (listener) => void listeners.add(listener),
    close: () => {
      listeners.clear();
      first.resolve();
    },
  };
}

/**
 * A discovery that never changes, for `--agents https://a:9443,https://b:9443`. Doubles are left out: an
 * agent listed twice would own twice as much.
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

/** @param host name or IP address; IPv6 without brackets */
export function agentUrl(host: string, port: number): string {
  return `https://${joinHostPort(host, port)}`;
}

/** Normalizes the URL of an agent: `https`, host and port only. @throws TypeError with the problem */
function parseAgentUrl(text: string): string {
  if (text.includes('@')) {
    throw new TypeError(
      'the URL of an agent holds no user or password; agents know their clients by certificate',
    );
  }
  const url = URL.parse(text.trim());
  const shown = JSON.stringify(text.trim().slice(0, 200));
  if (!url) throw new TypeError(`${shown} is not a URL; write https://host:port`);
  if (url.protocol !== 'https:') {
    throw new TypeError(`${shown}: agents are reached over https only; write https://host:port`);
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new TypeError(`${shown} has more than a host and a port; write https://host:port`);
  }
  return url.origin;
}
