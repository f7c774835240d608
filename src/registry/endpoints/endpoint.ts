/**
 * An endpoint is a URL base that serves an image: its registry or a mirror of it, with everything that a
 * request to it needs. Endpoint sources decide which endpoints an image has, and their order: archwright's
 * `proxies`, then the endpoints of the node's container runtime, else the registry by containerd's defaults.
 */
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { TlsSettings } from '../../http/tls/trust.ts';
import { reveal, type Secret } from '../../telemetry/secret.ts';
import { addressKind } from '../../http/reach/address.ts';
import { hashOf } from '../../names/hash.ts';

interface EndpointHeader {
  readonly name: string;
  readonly value: Secret;
}

/** Headers by name. Several values become one list, which HTTP treats like several lines. */
export function headersOf(headers: readonly EndpointHeader[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { name, value } of headers) {
    const key = name.toLowerCase();
    const before = found[key];
    const separator = key === 'cookie' ? '; ' : ', ';
    found[key] = before === undefined ? reveal(value) : `${before}${separator}${reveal(value)}`;
  }
  return found;
}

/** What a node pulls: a normalized reference with a tag or a digest. */
export interface PullTarget {
  /** A registry domain such as `docker.io` or `localhost:5000`. */
  readonly domain: string;
  /** `domain/path`. */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
  /** The name as the pod writes it, where the runtime finds its registry by itself (CRI-O). */
  readonly shortName?: string;
}

export interface Endpoint {
  /** `scheme://host[:port]/path` before `/<repository>/manifests/…`; usually ends in `/v2`. */
  readonly base: string;
  /** Host and port as written, for people and for limits. */
  readonly host: string;
  /** The registry namespace it serves, such as `docker.io`. */
  readonly namespace: string;
  /** The name that the runtime found for the image, before mirrors; `path` is without the domain. */
  readonly resolved?: { readonly domain: string; readonly path: string };
  /** Path of the repository there, if it differs from the one of the image. */
  readonly repository?: string;
  /** Why the runtime sends no request to it; another endpoint may serve the image. */
  readonly refusal?: Error;
  /** Whether `?ns=<namespace>` is appended: for every host other than the namespace, as in containerd. */
  readonly namespaceParameter: boolean;
  /** https first, then http if the peer does not speak TLS. Only for loopback and if configured. */
  readonly httpFallback: boolean;
  /** May turn a tag into a digest. */
  readonly resolve: boolean;
  readonly pull: boolean;
  readonly tls: TlsSettings;
  /** Sent with every request to this host, and only there. Values may be secret. */
  readonly headers: readonly EndpointHeader[];
  /** Sent to its token server too; headers that authenticate only if that is the same host. */
  readonly tokenHeaders?: readonly EndpointHeader[];
  readonly dialTimeoutMs?: number;
  /** Whether credentials matched for the namespace may be sent here. */
  readonly acceptsCredentials: boolean;
  /** Offered only to this endpoint, and only if there is no other credential for the namespace. */
  readonly ownCredential?: MatchedCredential;
  /** The own credential also stands in for others that are not accepted, or have no user name (CRI-O). */
  readonly prefersOwn?: true;
  /** Why there is no own credential: the endpoint fails where it would be offered. */
  readonly ownFailure?: Error;
  /** Source: `default`, `proxies`, `insecureRegistries`, or a file. */
  readonly origin: string;
}

export interface EndpointSource {
  /** Endpoints in the order of use. */
  endpoints(target: PullTarget): Promise<readonly Endpoint[]>;
  /** A hash over the configuration behind it; reveals nothing. */
  fingerprint(): string;
}

interface DefaultEndpointsOptions {
  /** Namespace → `[scheme://]host[:port][/path]`, such as `docker.io` → `docker-proxy.company.corp`. */
  readonly proxies?: Readonly<Record<string, string>>;
  /** Namespaces (`host[:port]`) with https without verification, and http if they do not speak TLS. */
  readonly insecureRegistries?: readonly string[];
}

/**
 * The endpoints of a namespace without a containerd configuration: archwright's `proxies` first, then the
 * origin by containerd's defaults (containerd `core/remotes/docker/config/hosts.go`).
 *
 * - `docker.io` is served by `registry-1.docker.io`; every other namespace by itself.
 * - `localhost` and loopback addresses: https without a port or with 443, http with port 80, otherwise https
 *   without verification and, if the peer does not speak TLS, http. `[::1]` without a port is not recognized
 *   as loopback.
 * - Everything else: https, unless `insecureRegistries` lists it.
 *
 * A proxy gets requests like a mirror in containerd, with `?ns=<namespace>`, by https unless its setting
 * begins with `http://`; its path is kept before `/v2`. It gets the credentials of the namespace, because it
 * was configured for that.
 * The settings are valid (`policy/value-kinds/addresses.ts`).
 */
export function createDefaultEndpoints(options: DefaultEndpointsOptions = {}): EndpointSource {
  const insecure = new Set(options.insecureRegistries ?? []);
  const settings = Object.entries(options.proxies ?? {});
  const proxies = new Map(settings.map(([name, proxy]) => [name, proxyEndpoint(name, proxy)]));
  const fingerprint = hashOf([options.proxies ?? {}, [...insecure]]);
  return {
    endpoints: ({ domain: namespace }) => {
      const proxy = proxies.get(namespace);
      const origin = originEndpoint(namespace, usual.tls, insecure.has(namespace));
      return Promise.resolve(proxy ? [proxy, origin] : [origin]);
    },
    fingerprint: () => fingerprint,
  };
}

/** Origin of a namespace. @param insecure https without verification, or http without TLS */
export function originEndpoint(namespace: string, tls: TlsSettings, insecure = false): Endpoint {
  const host = namespace === 'docker.io' ? 'registry-1.docker.io' : namespace;
  const plain = loopbackScheme(namespace);
  const lax = plain === 'either' || insecure;
  return {
    ...usual,
    base: `${plain === 'http' ? 'http' : 'https'}://${host}/v2`,
    host,
    namespace,
    namespaceParameter: false,
    httpFallback: lax,
    tls: lax ? { ...tls, skipVerify: true } : tls,
    origin: insecure ? 'insecureRegistries' : 'default',
  };
}

const usual = {
  resolve: true,
  pull: true,
  tls: { ca: [], client: [], skipVerify: false },
  headers: [],
  acceptsCredentials: true,
} as const;

function proxyEndpoint(namespace: string, proxy: string): Endpoint {
  const url = new URL(/^https?:\/\//.test(proxy) ? proxy : `https://${proxy}`);
  const path = url.pathname.split('/').filter((part) => part !== '');
  if (path.at(-1) !== 'v2') path.push('v2');
  return {
    ...usual,
    base: `${url.protocol}//${url.host}/${path.join('/')}`,
    host: url.host,
    namespace,
    namespaceParameter: url.host !== namespace,
    httpFallback: false,
    origin: 'proxies',
  };
}

/** The scheme of a host that is this machine for containerd (`docker.IsLocalhost`). */
function loopbackScheme(namespace: string): 'http' | 'https' | 'either' | undefined {
  const [, written, port] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d+))?$/.exec(namespace) ?? [];
  const host = (written ?? namespace).replace(/^\[|\]$/g, '');
  if (host !== 'localhost' && addressKind(host) !== 'loopback') return undefined;
  if (port === undefined || port === '443') return 'https';
  return port === '80' ? 'http' : 'either';
}

/**
 * Configured endpoints together with those of the node's container runtime: `proxies` first, then the node's.
 * `insecureRegistries` applies to the default host of a namespace, at any place in the node's list.
 * @param node of the node's runtime; its failures are passed on, because the node's pull would fail too
 */
export function withNodeEndpoints(own: EndpointSource, node: EndpointSource): EndpointSource {
  return {
    endpoints: async (target) => {
      const [configured, found] = await Promise.all([own.endpoints(target), node.endpoints(target)]);
      const proxies = configured.filter(({ origin }) => origin === 'proxies');
      const insecure = configured.find(({ origin }) => origin === 'insecureRegistries');
      const ofNode = found.map((endpoint) => {
        if (!insecure || endpoint.origin !== 'default' || endpoint.host !== insecure.host) return endpoint;
        const { base, tls, httpFallback, origin } = insecure;
        return { ...endpoint, base, tls, httpFallback, origin };
      });
      return [...proxies, ...ofNode];
    },
    fingerprint: () => hashOf([own.fingerprint(), node.fingerprint()]),
  };
}
