/**
 * Proxies from the environment, by the rules of Go's `golang.org/x/net/http/httpproxy`, as in the node's
 * container runtime: `HTTPS_PROXY` and `HTTP_PROXY` (upper case first), `NO_PROXY`, and never a proxy for
 * loopback.
 */
import { BlockList, isIP } from 'node:net';
import type { SourcePart } from '../../files/source-part.ts';
import { hostOf, portOf } from '../reach/address.ts';
import { secret, type Secret } from '../../telemetry/secret.ts';

export interface Proxy {
  /** `http:` or `https:`, host and port; without user info. */
  readonly url: URL;
  /** Value of `Proxy-Authorization`, if the variable holds a user name. */
  readonly authorization?: Secret;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Their names; Go reads them in lower case too. */
export const proxyVariables = [
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'https_proxy',
  'http_proxy',
  'no_proxy',
];

/** A proxy variable that cannot be used. The message names the variable, never its value. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

/** The proxy for a request, if any. @throws ProxyError if its variable is not an http or https URL */
export function proxyFor(target: URL, environment: Environment): Proxy | undefined {
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const value = read(environment, name);
  // A CGI server puts the client's `Proxy` header into HTTP_PROXY (httpoxy); Go refuses it there too.
  if (value === '' || (name === 'HTTP_PROXY' && read(environment, 'REQUEST_METHOD') !== '')) return undefined;
  if (bypasses(target, read(environment, 'NO_PROXY'))) return undefined;
  return parseProxy(name, value);
}

/** The set variables without logins. @param origin service that has them; default: this process */
export function describeProxies(environment: Environment, origin?: string): readonly SourcePart[] {
  const compare =
    'containerd has the variables of its own service: compare `systemctl show containerd -p Environment`';
  const differs = origin === undefined ? { differs: [compare] } : {};
  const from = origin === undefined ? '' : `, from ${origin}`;
  const parts: SourcePart[] = [];
  for (const name of ['HTTPS_PROXY', 'HTTP_PROXY']) {
    const value = read(environment, name);
    if (value === '') continue;
    try {
      const { url, authorization } = parseProxy(name, value);
      const login = authorization === undefined ? '' : ', with a login';
      parts.push({ where: name, state: 'used', what: `${url.host}${login}${from}`, ...differs });
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error;
      const what = `${error.message}; requests through it fail`;
      parts.push({ where: name, state: 'left-out', what, ...differs });
    }
  }
  const direct = read(environment, 'NO_PROXY');
  if (parts.length > 0 && direct !== '') parts.push({ where: 'NO_PROXY', state: 'used', what: direct });
  if (parts.length > 0) return parts;
  const what = `not set${origin === undefined ? '' : `, neither directly nor by ${origin}`}; no requests go through a proxy`;
  return [{ where: 'HTTPS_PROXY, HTTP_PROXY', state: 'absent', what, ...differs }];
}

function read(environment: Environment, name: string): string {
  return environment[name] || environment[name.toLowerCase()] || '';
}

function parseProxy(name: string, value: string): Proxy {
  const url = URL.parse(/^[a-z0-9+.-]+:\/\//i.test(value) ? value : `http://${value}`);
  if (!url) throw new ProxyError(`${name} is not a URL`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ProxyError(`${name}: proxies of the kind ${url.protocol} are not supported`);
  }
  const bare = new URL(`${url.protocol}//${url.host}`);
  if (url.username === '') return { url: bare };
  const user = `${decoded(name, url.username)}:${decoded(name, url.password)}`;
  return { url: bare, authorization: secret(`Basic ${Buffer.from(user).toString('base64')}`) };
}

function decoded(name: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ProxyError(`${name} has a login with an invalid percent escape`);
  }
}

/**
 * Whether `NO_PROXY` (or being loopback) exempts a target.
 * @param list comma separated: `*`, names (with their subdomains), `.suffixes` (subdomains only), addresses,
 * CIDR blocks; names and addresses may carry a port
 */
export function bypasses(target: URL, list: string): boolean {
  const host = hostOf(target);
  const port = String(portOf(target));
  if (host === 'localhost' || inBlock(host, '127.0.0.0', 8) || inBlock(host, '::1', 128)) return true;
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && matches(entry, host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) {
    const [network = '', bits = ''] = entry.split('/');
    return /^\d+$/.test(bits) && inBlock(host, network, Number(bits));
  }
  const { name, port: wanted } = splitPort(entry);
  if (name === '' || (wanted !== undefined && wanted !== port)) return false;
  if (isIP(name) !== 0) return inBlock(host, name, isIP(name) === 4 ? 32 : 128);
  if (isIP(host) !== 0) return false;
  const suffix = name.startsWith('*.') ? name.slice(1) : name;
  if (suffix.startsWith('.')) return host.endsWith(suffix);
  return host === suffix || host.endsWith(`.${suffix}`);
}

function splitPort(entry: string): { name: string; port: string | undefined } {
  const bracketed = /^\[([^\]]*)\](?::(\d+))?$/.exec(entry);
  const found = bracketed ?? (isIP(entry) === 0 ? /^([^:]*):(\d+)$/.exec(entry) : null);
  const [, name = '', port] = found ?? [entry, entry];
  return { name, port };
}

/** Whether a host is an address in a block; an IPv4-mapped address counts as IPv4. */
function inBlock(host: string, network: string, bits: number): boolean {
  const family = isIP(network);
  if (family === 0 || isIP(host) === 0 || bits > (family === 4 ? 32 : 128)) return false;
  const block = new BlockList();
  block.addSubnet(network, bits, family === 4 ? 'ipv4' : 'ipv6');
  return block.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}
