/**
 * Endpoints of the hosts in hosts.toml: fills in defaults, filters headers, and adds the credentials of
 * config.toml. The settings of one host never reach another. A last host without a name becomes the namespace's
 * default host, and hosts with `http://` and TLS settings are tried by https first (containerd
 * `core/remotes/docker/config/hosts.go` ConfigureHosts). Without `config_path`, the deprecated tables
 * `registry.mirrors` and `registry.configs` are in force (`internal/cri/server/images/image_pull.go`
 * registryEndpoints, registryHosts).
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { isLoginHeader } from '../../src/http/client.ts';
import type { Endpoint } from '../../src/registry/endpoints/endpoint.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import type { NodeConfig, Registry } from './config/registry.ts';
import { ConfigFileError, invalid } from '../toml.ts';
import { type Header, capabilitiesOf, noHost, type HostConfig } from './hosts/hosts-file.ts';
import { splitHostPort } from '../../src/names/host-port.ts';
import { parseGoUrl, type GoUrl } from '../go.ts';
import type { ContainerdRules } from './config/rules.ts';

export interface EndpointContext {
  readonly node: NodeConfig;
  readonly namespace: string;
  readonly hosts: readonly EffectiveHost[];
  readonly origin: string;
  /** The hosts are for every namespace without a directory of its own. */
  readonly forAll: boolean;
  /** Mirrors receive the credentials of the registry that they mirror. */
  readonly mirrorCredentials: boolean;
}

/** containerd's default for dialing; a longer `dial_timeout` is cut to it. */
const maxDialMs = 30_000;

/** Set by the HTTP client. Go drops the first four too; others could break or smuggle a request. */
const neverSent: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'trailer',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'expect',
  'te',
  'accept',
  'accept-encoding',
  'content-type',
]);

/** Skips hosts without a valid URL, as containerd fails there. */
export function endpointsOf(context: EndpointContext): readonly Endpoint[] {
  const made = context.hosts.map((host) => makeEndpoint(host, host === context.hosts.at(-1), context));
  return made.filter((endpoint) => endpoint !== undefined);
}

function makeEndpoint(host: EffectiveHost, isLast: boolean, context: EndpointContext): Endpoint | undefined {
  const { namespace, node } = context;
  const base = baseOf(host);
  if (base === undefined) return undefined;
  const { forAll, forHost } = headersFor(host, context);
  const own = node.credentials.get(host.host);
  return {
    base,
    host: host.host,
    namespace,
    namespaceParameter: wantsNamespace(host.host, namespace),
    httpFallback: host.httpFallback,
    resolve: host.capabilities.includes('resolve'),
    pull: host.capabilities.includes('pull'),
    tls: { ca: [], client: [], ...host.certificates, skipVerify: host.skipVerify === true },
    headers: [...forAll, ...forHost],
    // The transfer service sends headers for every registry to registries only, not to token servers.
    ...(node.rules.tokenHeaders && { tokenHeaders: node.localPull ? [...forAll, ...forHost] : forHost }),
    // 0 means no limit in Go; the HTTP client's own limit stays.
    ...(host.dialTimeoutMs !== undefined &&
      host.dialTimeoutMs !== 0 && { dialTimeoutMs: Math.min(Math.max(host.dialTimeoutMs, 1), maxDialMs) }),
    acceptsCredentials: isLast || context.mirrorCredentials,
    ...(own && { ownCredential: own }),
    origin: host.isDefault ? 'default' : context.origin,
  };
}

/** Whether `ns` is sent: to every host but the namespace's own (`RegistryHost.isProxy`). */
export function wantsNamespace(host: string, namespace: string): boolean {
  return host !== namespace && host !== defaultHostName(namespace);
}

/** The prefix of request URLs; undefined if it is not a valid URL. */
export function baseOf(location: Pick<EffectiveHost, 'scheme' | 'host' | 'path'>): string | undefined {
  const { scheme, host, path } = location;
  if ((scheme !== 'http' && scheme !== 'https') || host === '') return undefined;
  const url = URL.parse(`${scheme}://${host}`);
  if (!url) return undefined;
  url.pathname = path;
  return url.href.replace(/\/+$/, '');
}

/**
 * Headers of config.toml, for every registry, and headers of the host. The author of a pod chooses the
 * default host by the name of the image, so that host receives no headers of a file for every namespace, and
 * no login headers of config.toml.
 */
function headersFor(host: EffectiveHost, { node, forAll }: EndpointContext) {
  const everywhere = node.registry.headers.filter(({ name }) => !(host.isDefault && isLoginHeader(name)));
  return { forAll: sendable(everywhere), forHost: host.isDefault && forAll ? [] : sendable(host.headers) };
}

function sendable(headers: readonly Header[]): Header[] {
  return headers
    .filter(({ name }) => !neverSent.has(name.trim().toLowerCase()))
    .map(({ name, value }) => {
      // Go writes headers in UTF-8; Node writes one byte for each character.
      const bytes = Buffer.from(reveal(value), 'utf8').toString('latin1');
      return { name, value: secret(bytes) };
    });
}

export interface EffectiveHost extends HostConfig {
  /** https first, then http if the host does not speak TLS. */
  readonly httpFallback: boolean;
  /** The namespace's default host, not one from a file. */
  readonly isDefault: boolean;
}

/** @param configured hosts of the directory, if there is one @returns at least one, in order */
export function effectiveHosts(
  configured: readonly HostConfig[] | undefined,
  namespace: string,
  rules: ContainerdRules,
): EffectiveHost[] {
  const hosts = configured ?? [noHost];
  return hosts.map((host, index) => {
    const isDefault = index === hosts.length - 1 && host.host === '';
    const filled = isDefault ? { ...host, ...defaultHost(namespace, rules) } : host;
    const { ca, client, skipVerify } = filled;
    const tls = [ca, client, skipVerify].some((setting) => setting !== undefined);
    const port = splitHostPort(filled.host)?.port ?? '';
    const httpFallback = rules.httpFallback && filled.scheme === 'http' && tls && port !== '80';
    return { ...filled, ...(httpFallback && { scheme: 'https' }), httpFallback, isDefault };
  });
}

/** The host of a namespace without configuration (containerd `docker.DefaultHost`). */
export function defaultHostName(namespace: string): string {
  return namespace === 'docker.io' ? 'registry-1.docker.io' : namespace;
}

function defaultHost(namespace: string, rules: ContainerdRules): Partial<HostConfig> {
  const common = { host: defaultHostName(namespace), path: '/v2', capabilities: capabilitiesOf(rules) };
  if (!isLocalhost(namespace)) return { ...common, scheme: 'https' };
  // 1.6: plain HTTP for localhost.
  if (!rules.httpFallback) return { ...common, scheme: 'http', skipVerify: true };
  const port = splitHostPort(namespace)?.port ?? '';
  const scheme = port === '' || port === '443' ? 'https' : 'http';
  // Certificates for localhost do not verify. Port 80 has no TLS.
  return { ...common, scheme, ...(port !== '80' && { skipVerify: true }) };
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

/** `docker.IsLocalhost` and Go's `IsLoopback()`. Upstream keeps the brackets of `[::1]`: no match. */
export function isLocalhost(namespace: string): boolean {
  const host = splitHostPort(namespace)?.host ?? namespace;
  if (host === 'localhost' || host.includes('%')) return host === 'localhost';
  return isIPv4(host) ? loopback.check(host) : isIPv6(host) && loopback.check(host, 'ipv6');
}

/** `defaultScheme` of the CRI plugin, for mirrors without a scheme. */
export function defaultScheme(host: string): 'http' | 'https' {
  return isLocalhost(host) ? 'http' : 'https';
}

/**
 * URLs of the endpoints of a namespace: its mirrors or else those of `*`, then its default host, unless an
 * endpoint's host is the namespace itself. (A listed `registry-1.docker.io` does not replace the default host
 * of `docker.io`.)
 * @throws InvalidConfig for an endpoint that is not a URL; every pull of the namespace fails then
 */
export function mirrorEndpoints(mirrors: Registry['mirrors'], namespace: string): string[] {
  const written = mirrors.get(namespace) ?? mirrors.get('*') ?? [];
  const endpoints = written.map((endpoint) => {
    if (endpoint.includes('://')) return endpoint;
    return `${defaultScheme(urlOf(`dummy://${endpoint}`).host)}://${endpoint}`;
  });
  if (endpoints.some((endpoint) => urlOf(endpoint).host === namespace)) return endpoints;
  const host = defaultHostName(namespace);
  return [...endpoints, `${defaultScheme(host)}://${host}`];
}

/** Endpoints as hosts, with the TLS settings of `registry.configs`. @throws InvalidConfig, ConfigFileError */
export function mirrorHosts(
  { mirrors, configs }: Pick<Registry, 'mirrors' | 'configs'>,
  namespace: string,
): EffectiveHost[] {
  const named = mirrors.get(namespace) ?? mirrors.get('*') ?? [];
  return mirrorEndpoints(mirrors, namespace).map((endpoint, index) => {
    const { scheme, host, path } = urlOf(endpoint);
    const tls = configs.get(host)?.tls;
    if (tls?.client?.includes('') === true) {
      throw new ConfigFileError(`configs."${host}".tls`, 'cert_file and key_file go together');
    }
    const lax = isLocalhost(namespace) && scheme === 'http';
    return {
      scheme,
      host,
      path: path === '' ? '/v2' : path,
      capabilities: ['pull', 'resolve', 'referrers'],
      ...(tls?.ca !== undefined && { ca: [tls.ca] }),
      ...(tls?.client !== undefined && { client: [tls.client] }),
      ...(tls ? { skipVerify: tls.skipVerify } : lax && { skipVerify: true }),
      headers: [],
      httpFallback: false,
      isDefault: index >= named.length,
    };
  });
}

function urlOf(text: string): GoUrl {
  const url = parseGoUrl(text);
  if (!url) throw invalid('an endpoint of registry.mirrors is not a URL');
  return url;
}
