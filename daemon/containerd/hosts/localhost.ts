/** Which hosts containerd takes for this machine (containerd `core/remotes/docker/{resolver,registry}.go`): literals only, no names but one. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Go's `net.SplitHostPort`; undefined where it gives an error, such as for a host without a port. */
export function splitHostPort(text: string): { readonly host: string; readonly port: string } | undefined {
  const [, bracketed, plain, port = ''] = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? undefined : { host, port };
}

/** Go's `net.ParseIP(...).IsLoopback()`. */
function isLoopbackAddress(text: string): boolean {
  if (text.includes('%')) return false;
  return isIPv4(text) ? loopback.check(text) : isIPv6(text) && loopback.check(text, 'ipv6');
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

/** `docker.IsLocalhost`. `[::1]` without a port is none, because its brackets stay. */
export function isLocalhost(namespace: string): boolean {
  const host = splitHostPort(namespace)?.host ?? namespace;
  return host === 'localhost' || isLoopbackAddress(host);
}

/** `docker.MatchLocalhost`, by which clients of containerd choose plain HTTP; a port that is announced but missing is an error there. */
export function matchLocalhost(host: string): boolean {
  if (host === '::1' || host === '[::1]') return true;
  const split = splitHostPort(host);
  if (split === undefined) return !host.includes(':') && isLocalhost(host);
  return split.port !== '' && (split.host === 'localhost' || isLoopbackAddress(split.host));
}

/** `defaultScheme` of the CRI plugin, for mirrors that are written without a scheme. */
export function defaultScheme(host: string): 'http' | 'https' {
  return isLocalhost(host) ? 'http' : 'https';
}
