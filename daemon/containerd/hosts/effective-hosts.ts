/**
 * Hosts with defaults. A last host without a name becomes the namespace's default host, and hosts with
 * `http://` and TLS settings are tried by https first (containerd `core/remotes/docker/config/hosts.go`
 * ConfigureHosts). Without `config_path`, the deprecated tables `registry.mirrors` and `registry.configs` are
 * in force (`internal/cri/server/images/image_pull.go` registryEndpoints, registryHosts).
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { splitHostPort } from '../../../src/names/host-port.ts';
import { parseGoUrl, type GoUrl } from '../../go.ts';
import type { Registry } from '../config/registry.ts';
import type { ContainerdRules } from '../config/rules.ts';
import { ConfigFileError, invalid } from '../../toml.ts';
import { capabilitiesOf, noHost, type HostConfig } from './hosts-file.ts';

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
  const common = {
    host: defaultHostName(namespace),
    path: '/v2',
    capabilities: capabilitiesOf(rules),
  };
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
