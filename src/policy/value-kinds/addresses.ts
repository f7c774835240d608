/** Kinds of values for hosts: listen addresses, agents, registries and mirrors. */
import { parseListenAddress } from '../../serving/address.ts';
import { atMostStars, shown, text } from './plain.ts';
import type { Kind, TextRule } from '../settings/setting.ts';

/** A mirror of a registry. */
export interface RegistryProxy {
  readonly registry: string;
  /** Host, port and path, with `http://` before it for plain HTTP. */
  readonly endpoint: string;
}

/** DNS allows no longer name. */
const shortName = '[^/:=]{1,253}(?:[/:][^=]*)?';
/** A host with its port, and a path of 255 characters. */
const maxGlob = 520;

const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ipv4 = `${octet}(?:\\.${octet}){3}`;
const port = ':(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';

/** RFC 3986, `IPv6address`. */
function ipv6(): string {
  const h = '[0-9A-Fa-f]{1,4}';
  const last = `(?:${h}:${h}|${ipv4})`;
  const compressed = [5, 4, 3, 2, 1, 0].map((after, index) => {
    const before = index === 0 ? '' : `(?:(?:${h}:){0,${index - 1}}${h})?`;
    return `${before}::(?:${h}:){${after}}${last}`;
  });
  const short = [`(?:(?:${h}:){0,5}${h})?::${h}`, `(?:(?:${h}:){0,6}${h})?::`];
  return `(?:${[`(?:${h}:){6}${last}`, ...compressed, ...short].join('|')})`;
}

/** A host name, IPv4 address or bracketed IPv6 address. @param star a further letter of names */
function hostName(star: '' | '*' = ''): string {
  const letter = `A-Za-z${star}`;
  const inner = `[-${letter}0-9]*[${letter}0-9]`;
  const label = `[${letter}0-9](?:${inner})?`;
  // URLs read a name that ends in a number as an IPv4 address (WHATWG URL, "ends in a number").
  const last = [
    `[${letter}](?:${inner})?`,
    `[0-9]+(?:-${inner}|[A-WYZa-wyz${star}](?:${inner})?)`,
    `(?:[1-9][0-9]*|0[0-9]+)[Xx](?:${inner})?`,
  ];
  return `(?:(?:${label}\\.)*(?:${last.join('|')})|${ipv4}|\\[${ipv6()}\\])`;
}

const host = `${hostName()}(?:${port})?`;
/** A segment of a path is not `..`. */
const segment =
  '(?:[-A-Za-z0-9_~][-A-Za-z0-9._~]*|\\.(?:[-A-Za-z0-9_~][-A-Za-z0-9._~]*)?|\\.\\.[-A-Za-z0-9._~]+)?';
const path = `(?:/${segment})*`;

function rule(patterns: readonly string[], says: string): TextRule {
  return { match: patterns.map((pattern) => ({ pattern: `^${pattern}$`, says })) };
}

const listens = text('address and port', (value) => {
  try {
    parseListenAddress(value);
    return undefined;
  } catch {
    return `must be an address and a port such as 0.0.0.0:8443, not ${shown(value)}`;
  }
});

/** An address to listen on; port 0 is any free port. */
export const listenAddress = { ...listens, placeholder: 'ADDRESS:PORT' };

export const registryHost = text(
  'registry host',
  rule([host, shortName], "must be a registry's host such as registry.example.com:5000, not {}"),
);

/** A registry's host with `*` for a part, and optionally the beginning of a path. */
export const registryPattern = text(
  'registry pattern',
  rule(
    [`${hostName('*')}(?:${port})?${path}`, shortName],
    "must be a registry's host such as *.corp.example.com, not {}",
  ),
);

/** More stars could take long to match against a name made for it. */
const maxStars = 4;

/** A glob over `host[:port]/path` of repositories. */
export const registryGlob = text('registry glob', {
  match: [`^[-A-Za-z0-9._:*\\[\\]]+(?:/[-a-z0-9._*]+)*$`, `^.{1,${maxGlob}}$`, atMostStars(maxStars)].map(
    (pattern) => ({
      pattern,
      says: `must be a host and a path such as ghcr.io/team/** with at most ${maxStars} stars, not {}`,
    }),
  ),
});

const namedHost = new RegExp(`^${host}$`);

const agentForms = 'https://HOST:PORT or endpointslices:NAMESPACE/SERVICE';

export const agentsLocation = text('location of agents', (value) => {
  const [scheme, rest] = split(value, ':');
  const sound =
    (scheme === 'https' && rest.startsWith('//') && namedHost.test(rest.slice(2))) ||
    (scheme === 'endpointslices' && /^[a-z0-9][-a-z0-9]{0,62}\/[a-z0-9][-a-z0-9]{0,62}$/.test(rest));
  return sound ? undefined : `must be ${agentForms}, not ${shown(value)}`;
});

const mirror = text(
  'registry=mirror',
  rule(
    [`${host}=(?:https?://)?${host}${path}`, `${shortName}=(?:https?://)?${shortName}`],
    'must be REGISTRY=MIRROR such as docker.io=docker-proxy.example.com, not {}',
  ),
);

/** `registry=mirror`. */
export const registryProxy: Kind<RegistryProxy> = {
  ...mirror,
  read: (value, report) => {
    const [registry, endpoint] = split(mirror.read(value, report) ?? '', '=');
    return registry === '' ? undefined : { registry, endpoint };
  },
  write: ({ registry, endpoint }) => `${registry}=${endpoint}`,
};

function split(value: string, separator: string): [string, string] {
  const at = value.indexOf(separator);
  return at < 0 ? [value, ''] : [value.slice(0, at), value.slice(at + separator.length)];
}
