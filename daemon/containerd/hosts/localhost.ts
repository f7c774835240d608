/** Hosts that containerd treats as local (`core/remotes/docker/{resolver,registry}.go`): `localhost` and loopback addresses. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Go's `net.SplitHostPort`; undefined for its errors, for example a host without a port. */
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

/** `docker.IsLocalhost`. `[::1]` without a port does not match, because upstream keeps its brackets. */
export function isLocalhost(namespace: string): boolean {
  const host = splitHostPort(namespace)?.host ?? namespace;
  return host === 'localhost' || isLoopbackAddress(host);
}

/** `defaultScheme` of the CRI plugin, for mirrors without a scheme. */
export function defaultScheme(host: string): 'http' | 'https' {
  return isLocalhost(host) ? 'http' : 'https';
}
