/**
 * Keys of a docker config, split as by Go's net/url (kubernetes pkg/credentialprovider/keyring.go). WHATWG
 * `URL` must not be used: it lower-cases hosts, drops `:443`, rewrites numbers to addresses and resolves
 * `..`, but here ports and case must be equal.
 */
import { isIPv6 } from 'node:net';
import { splitHostPort } from '../../names/host-port.ts';

export interface HostPath {
  /** Includes the port, and brackets around an IPv6 address. */
  readonly host: string;
  /** Empty, or begins with a slash; percent escapes are decoded. */
  readonly path: string;
}

const controlCharacter = /[^ -~\u0080-\uffff]/;
const userInfo = /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/;
const hostCharacters = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%]|[\u0080-\uffff])*$/;
const brokenEscape = /%(?![0-9A-Fa-f]{2})/;
/** In a host, only bytes outside ASCII and the percent sign may be escaped. */
const forbiddenHostEscape = /%(?!25|[89A-Fa-f])/;
const optionalPort = /^(?::[0-9]*)?$/;

/** `host[:port][/path][?query][#fragment]`, perhaps with user info; `undefined` for errors in Go. */
export function splitHostPath(text: string): HostPath | undefined {
  const [beforeFragment, fragment] = cut(text, '#');
  if (controlCharacter.test(beforeFragment) || brokenEscape.test(fragment)) return undefined;
  const [address] = cut(beforeFragment, '?');
  const slash = address.includes('/') ? address.indexOf('/') : address.length;
  const authority = address.slice(0, slash);
  const at = authority.lastIndexOf('@');
  const user = authority.slice(0, Math.max(at, 0));
  if (!userInfo.test(user) || brokenEscape.test(user)) return undefined;
  const host = parseHost(authority.slice(at + 1));
  const path = unescape(address.slice(slash));
  return host === undefined || path === undefined ? undefined : { host, path };
}

/**
 * Host and path without scheme, user info, query, fragment, and without the `/v1` or `/v2` of a registry's
 * API if more follows. @returns undefined if the key cannot be parsed; the kubelet skips only such an entry
 */
export function indexKey(mapKey: string): string | undefined {
  const split = splitHostPath(mapKey.replace(/^https?:\/\//, ''));
  if (split === undefined) return undefined;
  const path = /^\/v[12]\//.test(split.path) ? split.path.slice(3) : split.path;
  return path === '/' ? split.host : split.host + path;
}

function parseHost(host: string): string | undefined {
  if (!hostCharacters.test(host) || forbiddenHostEscape.test(host)) return undefined;
  if (host.includes('[')) {
    // Current Go allows brackets only for IPv6. Zones are not supported: no reference can have one.
    const [, address = '', port = ''] = /^\[([^\]]*)\](.*)$/.exec(host) ?? [];
    return isIPv6(address) && !address.includes('%') && optionalPort.test(port) ? host : undefined;
  }
  const colon = host.lastIndexOf(':');
  if (colon >= 0 && !optionalPort.test(host.slice(colon))) return undefined;
  return unescape(host);
}

/** Decodes percent escapes to UTF-8; `undefined` if one is broken. */
function unescape(text: string): string | undefined {
  if (brokenEscape.test(text)) return undefined;
  const bytes = Buffer.from(text)
    .toString('latin1')
    .replaceAll(/%(..)/gs, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

export interface Pattern {
  readonly labels: readonly string[];
  readonly port: string;
  readonly path: string;
}

/** `host[:port][/path]`, such as `*.dkr.ecr.*.amazonaws.com`; `undefined` matches nothing. */
export function parsePattern(text: string): Pattern | undefined {
  const split = splitHostPath(text);
  if (split === undefined) return undefined;
  const { host, port } = splitHostPort(split.host) ?? { host: split.host, port: '' };
  return { labels: host.split('.'), port, path: split.path };
}

/**
 * The kubelet's rules for docker config keys and for `matchImages` (kubernetes
 * pkg/credentialprovider/keyring.go `URLsMatch`): equal ports as written, as many labels, `*` for any text
 * inside a label, the path a plain prefix. There are no default ports, and case matters.
 */
export function matches(pattern: Pattern, repository: Pattern): boolean {
  return (
    pattern.port === repository.port &&
    pattern.labels.length === repository.labels.length &&
    repository.path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => matchesLabel(label, repository.labels[index] ?? ''))
  );
}

/** Each text between stars is taken where it first appears, so nothing is tried again. */
function matchesLabel(pattern: string, label: string): boolean {
  // To the kubelet's glob, IPv6 in brackets is a character class, which never matches.
  if (pattern.includes('[')) return false;
  const [first = '', ...between] = pattern.split('*');
  const last = between.pop();
  if (last === undefined) return label === first;
  if (!label.startsWith(first) || !label.endsWith(last)) return false;
  let end = first.length;
  for (const text of between) {
    const at = label.indexOf(text, end);
    if (at < 0) return false;
    end = at + text.length;
  }
  return end + last.length <= label.length;
}
