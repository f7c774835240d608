/**
 * The guard for realms: the URL of a token server is chosen by the registry, and credentials are sent there. containerd has
 * no guard; the rules are those of go-containerregistry (`pkg/v1/remote/transport/bearer.go`), applied to the host as Node will dial
 * it, so that `https://2130706433/` is seen for what it is. Names are checked again after resolution: `address.ts`.
 */
import { addressKind, isForbiddenAddress } from '../../http/address.ts';

export type RealmVerdict =
  | { readonly ok: true; readonly url: URL }
  /** `reason` is for people and names the host at most. */
  | { readonly ok: false; readonly reason: string };

/** The registry that sent the challenge. */
export interface ChallengingRegistry {
  /** `host[:port]` as it was asked. */
  readonly host: string;
  /** Whether it was asked by plain HTTP, by configuration. */
  readonly insecure: boolean;
  /** The address at which it was reached; unknown behind a proxy, and then it counts as public. */
  readonly ip?: string | undefined;
}

const defaultPorts: ReadonlyMap<string, string> = new Map([
  ['http', '80'],
  ['https', '443'],
]);

/** Names that lead to this machine, or to a cloud's metadata service, without an IP literal. */
const loopbackNames = /^(?:.*\.)?localhost\.?$/;
const metadataNames = /^(?:metadata|metadata\.google\.internal|instance-data(?:\.ec2\.internal)?)\.?$/;

/**
 * Whether a token may be asked for at a realm: https (http only for a registry that is itself asked by http), no user info, and no
 * literal address inside the node's or a private network, unless it is the registry itself or the registry was reached in such a
 * network too (`isForbiddenAddress`): a registry on this machine often has its token server beside it, on another port.
 * @param realm as the challenge wrote it
 * @param registry who wrote it
 */
export function validateRealm(realm: string, registry: ChallengingRegistry): RealmVerdict {
  if (!URL.canParse(realm)) return refuse('the realm is no absolute URL');
  const url = new URL(realm);
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'https' && scheme !== 'http') return refuse('the realm is neither https nor http');
  if (scheme === 'http' && !registry.insecure) {
    return refuse('the realm is http, but the registry is asked by https');
  }
  if (url.username !== '' || url.password !== '') return refuse('the realm carries a user name or password');
  if (isRegistryItself(url, scheme, registry)) return { ok: true, url };

  const host = url.hostname.replace(/^\[|\]$/g, '');
  const kind = addressKind(host);
  if (kind !== undefined && isForbiddenAddress(host, registry.ip)) {
    return refuse(`the realm's host ${host} is a ${kind} address and not the registry itself`);
  }
  const registryIsHere = registry.ip !== undefined && addressKind(registry.ip) === 'loopback';
  if (metadataNames.test(host) || (loopbackNames.test(host) && !registryIsHere)) {
    return refuse(`the realm's host ${host} names this machine or a metadata service`);
  }
  return { ok: true, url };
}

/**
 * `host:port` with the port always written, for telling whether two addresses are the same. Something that is no address comes
 * back unchanged, and so equals only itself.
 * @param address `host`, `host:port`, or an IPv6 literal, in brackets where a port follows
 * @param scheme `http` or `https`, for the default port
 */
export function canonicalAddress(address: string, scheme: string): string {
  const port = defaultPorts.get(scheme) ?? '';
  const colons = address.split(':').length - 1;
  if (colons === 1 || (colons > 1 && address.includes(']:'))) {
    const parts = splitHostPort(address);
    return parts === undefined ? address : joinHostPort(parts.host, parts.port === '' ? port : parts.port);
  }
  return joinHostPort(address.replace(/^\[(.*)\]$/, '$1'), port);
}

function isRegistryItself(url: URL, scheme: string, registry: ChallengingRegistry): boolean {
  const registryScheme = registry.insecure ? 'http' : 'https';
  return canonicalAddress(url.host, scheme) === canonicalAddress(registry.host.toLowerCase(), registryScheme);
}

/** net.SplitHostPort of Go: undefined where Go reports an error. */
function splitHostPort(address: string): { host: string; port: string } | undefined {
  const bracketed = /^\[([^[\]]*)\]:([^:[\]]*)$/.exec(address);
  const plain = /^([^:[\]]*):([^:[\]]*)$/.exec(address);
  const [, host, port] = bracketed ?? plain ?? [];
  return host === undefined || port === undefined ? undefined : { host, port };
}

function joinHostPort(host: string, port: string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function refuse(reason: string): RealmVerdict {
  return { ok: false, reason };
}
