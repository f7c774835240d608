/**
 * The endpoints of a namespace without a containerd configuration: archwright's `proxies` first, then the origin by
 * containerd's defaults (containerd `core/remotes/docker/config/hosts.go`).
 *
 * - `docker.io` is served by `registry-1.docker.io`; every other namespace by itself.
 * - `localhost` and loopback addresses: https without a port or with 443, http with port 80, otherwise https without
 *   verification and, if the peer does not speak TLS, http. `[::1]` without a port is not recognized as loopback.
 * - Everything else: https, unless `insecureRegistries` lists it.
 *
 * A proxy gets requests like a mirror in containerd, with `?ns=<namespace>`, by https unless its setting begins with `http://`; its
 * path is kept before `/v2`. It gets the credentials of the namespace, because it was configured for that.
 */
import { createHash } from 'node:crypto';
import { addressKind } from '../../http/reach/address.ts';
import type { TlsSettings } from '../../http/tls/trust.ts';
import type { Endpoint, EndpointSource } from './endpoint.ts';

export interface DefaultEndpointsOptions {
  /** Namespace → `[scheme://]host[:port][/path]` of its proxy, such as `docker.io` → `docker-proxy.company.corp`. */
  readonly proxies?: Readonly<Record<string, string>>;
  /** Namespaces (`host[:port]`) with https without verification, and http if they do not speak TLS. */
  readonly insecureRegistries?: readonly string[];
  /** PEM texts to trust for every endpoint made here. */
  readonly ca?: readonly string[];
}

/** A proxy setting that is not valid. */
export class ProxySettingError extends Error {
  readonly code = 'malformed';
  readonly temporary = false;
  /** The namespace at fault. */
  readonly where: string;
  constructor(where: string, message: string) {
    super(message);
    this.name = 'ProxySettingError';
    this.where = where;
  }
}

/**
 * Makes the source of default endpoints.
 * @throws ProxySettingError if a proxy is not a host or http(s) URL
 */
export function createDefaultEndpoints(options: DefaultEndpointsOptions = {}): EndpointSource {
  const tls: TlsSettings = { ca: options.ca ?? [], client: [], skipVerify: false };
  const insecure = new Set(options.insecureRegistries ?? []);
  const proxies = new Map(
    Object.entries(options.proxies ?? {}).map(([namespace, proxy]) => [
      namespace,
      proxyEndpoint(namespace, proxy, tls),
    ]),
  );
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([options.proxies ?? {}, [...insecure], tls.ca]))
    .digest('hex');
  return {
    endpoints: (namespace) => {
      const proxy = proxies.get(namespace);
      const origin = originEndpoint(namespace, tls, insecure.has(namespace));
      return Promise.resolve(proxy ? [proxy, origin] : [origin]);
    },
    fingerprint: () => fingerprint,
  };
}

/**
 * The origin of a namespace.
 * @param insecure https without verification, and http if it does not speak TLS
 */
export function originEndpoint(namespace: string, tls: TlsSettings, insecure = false): Endpoint {
  const host = namespace === 'docker.io' ? 'registry-1.docker.io' : namespace;
  const plain = isLoopbackNamespace(namespace) ? loopbackScheme(namespace) : undefined;
  const lax = plain === 'either' || insecure;
  return {
    base: `${plain === 'http' ? 'http' : 'https'}://${host}/v2`,
    host,
    namespace,
    namespaceParameter: false,
    httpFallback: lax,
    resolve: true,
    pull: true,
    tls: lax ? { ...tls, skipVerify: true } : tls,
    headers: [],
    acceptsCredentials: true,
    origin: insecure ? 'insecureRegistries' : 'default',
  };
}

function proxyEndpoint(namespace: string, proxy: string, tls: TlsSettings): Endpoint {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `https://${proxy}`);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '') {
    throw new ProxySettingError(
      namespace,
      `the proxy of ${namespace} is not a host, nor an http or https URL`,
    );
  }
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new ProxySettingError(
      namespace,
      `the proxy of ${namespace} may hold scheme, host, port and path only`,
    );
  }
  const path = url.pathname.split('/').filter((part) => part !== '');
  if (path.at(-1) !== 'v2') path.push('v2');
  return {
    base: `${url.protocol}//${url.host}/${path.join('/')}`,
    host: url.host,
    namespace,
    namespaceParameter: url.host !== namespace,
    httpFallback: false,
    resolve: true,
    pull: true,
    tls,
    headers: [],
    acceptsCredentials: true,
    origin: 'proxies',
  };
}

/** Hosts that are this machine for containerd (`docker.IsLocalhost`): by name or by literal, nothing else. */
function isLoopbackNamespace(namespace: string): boolean {
  const { host } = splitNamespace(namespace);
  return host === 'localhost' || addressKind(host) === 'loopback';
}

function loopbackScheme(namespace: string): 'http' | 'https' | 'either' {
  const { port } = splitNamespace(namespace);
  if (port === undefined || port === '443') return 'https';
  return port === '80' ? 'http' : 'either';
}

function splitNamespace(namespace: string): { host: string; port?: string } {
  const [, host, port] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d+))?$/.exec(namespace) ?? [];
  return {
    host: (host ?? namespace).replace(/^\[|\]$/g, ''),
    ...(port === undefined ? {} : { port }),
  };
}

/**
 * @param own default endpoints with `proxies` (`createDefaultEndpoints`)
 * @param node endpoints of the node's runtime; its failures are passed on, because the node's pull would fail too
 */
export function withNodeEndpoints(own: EndpointSource, node: EndpointSource): EndpointSource {
  return {
    endpoints: async (namespace) => {
      const [configured, found] = await Promise.all([own.endpoints(namespace), node.endpoints(namespace)]);
      const proxies = configured.filter(({ origin }) => origin === 'proxies');
      const insecure = configured.find(({ origin }) => origin === 'insecureRegistries');
      return [
        ...proxies,
        ...found.map((endpoint) => (insecure && endpoint.origin === 'default' ? insecure : endpoint)),
      ];
    },
    fingerprint: () =>
      createHash('sha256')
        .update(JSON.stringify([own.fingerprint(), node.fingerprint()]))
        .digest('hex'),
  };
}
