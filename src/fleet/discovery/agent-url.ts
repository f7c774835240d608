/** Addresses of agents as people and resolvers write them. */
import { isIPv6 } from 'node:net';

/**
 * The URL of an agent.
 * @param host name or IP address; IPv6 without brackets
 */
export function agentUrl(host: string, port: number): string {
  return `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/**
 * Checks and normalizes what a person wrote as the URL of an agent: `https`, a host, a port, nothing else. A wrong one is
 * refused at the start.
 * @throws TypeError with what is wrong with it
 */
export function parseAgentUrl(text: string): string {
  if (text.includes('@')) {
    throw new TypeError(
      'the URL of an agent holds no user or password; agents know their clients by certificate',
    );
  }
  const url = URL.parse(text.trim());
  const shown = JSON.stringify(text.trim().slice(0, 200));
  if (!url) throw new TypeError(`${shown} is no URL; write https://host:port`);
  if (url.protocol !== 'https:') {
    throw new TypeError(`${shown}: agents are asked over https only; write https://host:port`);
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new TypeError(`${shown} has more than a host and a port; write https://host:port`);
  }
  return url.origin;
}
