/**
 * Kinds of IP addresses, and which of them a realm or redirect may name. A registry chooses both, and an
 * agent follows them with the identity of its node. So the address is checked after name resolution, and the
 * checked address is dialed (a second resolution may have another result).
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type AddressKind =
  'public' | 'private' | 'loopback' | 'link-local' | 'metadata' | 'unspecified' | 'multicast' | 'reserved';

/** IPv4 ranges by kind; the first match counts (IANA special-purpose registry). */
const ranges4 = (
  [
    ['169.254.169.254/32', 'metadata'],
    ['169.254.170.2/32', 'metadata'], // Amazon ECS task credentials
    ['100.100.100.200/32', 'metadata'], // Alibaba Cloud
    ['168.63.129.16/32', 'metadata'], // Azure; in public space, served by the host
    ['192.0.0.192/32', 'metadata'], // Oracle Cloud
    ['0.0.0.0/8', 'unspecified'],
    ['10.0.0.0/8', 'private'],
    ['100.64.0.0/10', 'private'], // carrier-grade NAT; clouds use it for pods and services
    ['127.0.0.0/8', 'loopback'],
    ['169.254.0.0/16', 'link-local'],
    ['172.16.0.0/12', 'private'],
    ['192.0.0.0/24', 'reserved'],
    ['192.168.0.0/16', 'private'],
    ['198.18.0.0/15', 'private'],
    ['224.0.0.0/4', 'multicast'],
    ['240.0.0.0/4', 'reserved'],
  ] satisfies [string, AddressKind][]
).map(([range, kind]) => ({ range: ipaddr.IPv4.parseCIDR(range), kind }));

/** IPv6 ranges by kind; a number: the address counts as the IPv4 address in the four bytes from there. */
const ranges6 = (
  [
    ['fd00:ec2::/32', 'metadata'], // Amazon: instance metadata, DNS, time and task credentials are all here
    ['fd20:ce::254/128', 'metadata'], // Google
    ['::/128', 'unspecified'],
    ['::1/128', 'loopback'],
    ['::/96', 12], // IPv4-compatible, deprecated, but some stacks still map it
    ['::ffff:0:0/96', 12], // IPv4-mapped
    ['::ffff:0:0:0/96', 12], // IPv4-translated
    ['64:ff9b::/96', 12], // NAT64
    ['64:ff9b:1::/48', 'private'], // NAT64 of a site: the position of the IPv4 part is unknown
    ['2001::/32', 'reserved'], // Teredo hides an IPv4 address
    ['2002::/16', 2], // 6to4
    ['fc00::/7', 'private'],
    ['fe80::/10', 'link-local'],
    ['fec0::/10', 'private'],
    ['ff00::/8', 'multicast'],
  ] satisfies [string, AddressKind | number][]
).map(([range, kind]) => ({ range: ipaddr.IPv6.parseCIDR(range), kind }));

/** The host of a URL without the brackets of an IPv6 address. */
export function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** The host of a URL as resolvers compare it: without brackets and without the dot of an absolute name. */
export function hostOf(url: URL): string {
  return bareHost(url).replace(/\.$/, '');
}

/** The name that a TLS client sends: none for an address (RFC 6066, section 3). */
export function serverNameOf(host: string): string {
  return isIP(host) === 0 ? host : '';
}

export function portOf({ port, protocol }: URL): number {
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

/** Kind of an IP literal without brackets; its zone is ignored. `undefined` for other texts */
export function addressKind(ip: string): AddressKind | undefined {
  // The parser also reads legacy notations, which `isIP` refuses.
  const family = isIP(ip);
  if (family === 4) return kind4(ipaddr.IPv4.parse(ip));
  return family === 6 ? kind6(ipaddr.IPv6.parse(ip.split('%', 1)[0] ?? ip)) : undefined;
}

/**
 * Whether a realm or redirect target may not be dialed.
 * @param ip the resolved address of the target
 * @param registryIp the registry's own address. A registry in a private network or on this machine may name a
 *   neighbor in the same kind of network; a public one only public addresses.
 */
export function isForbiddenAddress(ip: string, registryIp?: string): boolean {
  const kind = addressKind(ip);
  if (kind === 'public') return false;
  const registry = registryIp === undefined ? undefined : addressKind(registryIp);
  if (kind === 'private') return registry !== 'private' && registry !== 'loopback';
  if (kind === 'loopback') return registry !== 'loopback';
  return true;
}

function kind4(address: ipaddr.IPv4): AddressKind {
  return ranges4.find(({ range }) => address.match(range))?.kind ?? 'public';
}

function kind6(address: ipaddr.IPv6): AddressKind {
  const kind = ranges6.find(({ range }) => address.match(range))?.kind ?? 'public';
  return typeof kind === 'number'
    ? kind4(new ipaddr.IPv4(address.toByteArray().slice(kind, kind + 4)))
    : kind;
}
