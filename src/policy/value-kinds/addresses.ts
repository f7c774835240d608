/** Kinds of values for hosts: listen addresses, agents, registries and mirrors. */
import { isIPv6 } from 'node:net';
import { parseListenAddress } from '../../serving/address.ts';
import { refuse, shown, text } from './plain.ts';
import type { Kind } from '../settings/setting.ts';

/** A mirror of a registry. */
export interface RegistryProxy {
  readonly registry: string;
  /** Host, port and path, with `http://` before it for plain HTTP. */
  readonly endpoint: string;
}

const name = String.raw`(?:[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?`;
const host = new RegExp(String.raw`^(?:(${name})|\[([0-9A-Fa-f:.]+)\])(?::(\d{1,5}))?$`);
const maxPort = 65_535;
/** DNS allows no longer name. */
const maxName = 253;
/** A host with its port, and a path of 255 characters. */
const maxGlob = 520;

/** Whether a text is a host name, IPv4 address or bracketed IPv6 address, with or without a port. */
function isHost(value: string, port: 'must' | 'may'): boolean {
  const match = host.exec(value);
  if (!match || (match[1] ?? '').length > maxName) return false;
  if (match[2] !== undefined && !isIPv6(match[2])) return false;
  // URLs read a name that ends in a number as an IPv4 address.
  if (!URL.canParse(`https://${value}`)) return false;
  return match[3] === undefined ? port === 'may' : Number(match[3]) <= maxPort;
}

/** An address to listen on; port 0 is any free port. */
export const listenAddress = text('address and port', (value) => {
  try {
    parseListenAddress(value);
    return undefined;
  } catch {
    return `must be an address and a port such as 0.0.0.0:8443, not ${shown(value)}`;
  }
});

export const registryHost = text('registry host', (value) =>
  isHost(value, 'may')
    ? undefined
    : `must be a registry's host such as registry.example.com:5000, not ${shown(value)}`,
);

/** A registry's host with `*` for a part, and optionally the beginning of a path. */
export const registryPattern = text('registry pattern', (value) => {
  const [authority, path] = split(value, '/');
  return isHost(authority.replaceAll('*', 'x'), 'may') && isPath(path)
    ? undefined
    : `must be a registry's host such as *.corp.example.com, not ${shown(value)}`;
});

/** More stars could take long to match against a name made for it. */
const maxStars = 4;

/** A glob over `host[:port]/path` of repositories. */
export const registryGlob = text('registry glob', (value) => {
  const isGlob = /^[-A-Za-z0-9._:*[\]]+(?:\/[-a-z0-9._*]+)*$/.test(value) && value.length <= maxGlob;
  return isGlob && (value.match(/\*+/g) ?? []).length <= maxStars
    ? undefined
    : `must be a host and a path such as ghcr.io/team/** with at most ${maxStars} stars, not ${shown(value)}`;
});

const agentForms = 'https://HOST:PORT, dns:NAME:PORT or endpointslices:NAMESPACE/SERVICE';

export const agentsLocation = text('location of agents', (value) => {
  const [scheme, rest] = split(value, ':');
  const sound =
    (scheme === 'https' && rest.startsWith('//') && isHost(rest.slice(2), 'may')) ||
    (scheme === 'dns' && isHost(rest, 'must')) ||
    (scheme === 'endpointslices' && /^[a-z0-9][-a-z0-9]{0,62}\/[a-z0-9][-a-z0-9]{0,62}$/.test(rest));
  return sound ? undefined : `must be ${agentForms}, not ${shown(value)}`;
});

/** `registry=mirror`. */
export const registryProxy: Kind<RegistryProxy> = {
  name: 'registry=mirror',
  placeholder: 'REGISTRY=MIRROR',
  schema: { type: 'string', pattern: '^[^=]+=[^=]+$' },
  fromText: (given) => given,
  read: (value, report) => {
    const [registry = '', endpoint = ''] = typeof value === 'string' ? split(value, '=') : [];
    if (isHost(registry, 'may') && isMirror(endpoint)) return { registry, endpoint };
    return refuse(
      report,
      `must be REGISTRY=MIRROR such as docker.io=docker-proxy.example.com, not ${shown(value)}`,
    );
  },
  write: ({ registry, endpoint }) => `${registry}=${endpoint}`,
};

function isMirror(endpoint: string): boolean {
  const [authority, path] = split(endpoint.replace(/^https?:\/\//, ''), '/');
  return isHost(authority, 'may') && isPath(path);
}

function isPath(path: string): boolean {
  return /^[-A-Za-z0-9._~/]*$/.test(path) && !path.split('/').includes('..');
}

function split(value: string, separator: string): [string, string] {
  const at = value.indexOf(separator);
  return at < 0 ? [value, ''] : [value.slice(0, at), value.slice(at + separator.length)];
}
