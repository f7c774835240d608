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
 */
import { addressKind } from '../../http/reach/address.ts';
import { hashOf } from '../../names/hash.ts';
import type { TlsSettings } from '../../http/tls/trust.ts';
import type { Endpoint, EndpointSource } from './endpoint.ts';

interface DefaultEndpointsOptions {
  /** Namespace → `[scheme://]host[:port][/path]`, such as `docker.io` → `docker-proxy.company.corp`. */
  readonly proxies?: Readonly<Record<string, string>>;
  /** Namespaces (`host[:port]`) with https without verification, and http if they do not speak TLS. */
  readonly insecureRegistries?: readonly string[];
}

/** The settings are valid (`policy/value-kinds/addresses.ts`). */
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
