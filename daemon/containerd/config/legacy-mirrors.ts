/**
 * The deprecated tables `registry.mirrors` and `registry.configs` of config.toml, in force without `config_path` (containerd
 * `internal/cri/server/images/image_pull.go` registryEndpoints, registryHosts).
 */
import { defaultHostName, type EffectiveHost } from '../hosts/host-defaults.ts';
import { parseGoUrl, type GoUrl } from '../../go/url.ts';
import { defaultScheme, isLocalhost } from '../hosts/localhost.ts';
import { ConfigFileError, InvalidConfig } from '../config-error.ts';
import type { Registry } from './registry.ts';

/**
 * URLs of the endpoints of a namespace: its mirrors or else those of `*`, then its default host, unless an endpoint's host is the
 * namespace itself. (A listed `registry-1.docker.io` does not replace the default host of `docker.io`.)
 * @throws InvalidConfig for an endpoint that is not a URL; every pull of the namespace fails then
 */
export function mirrorEndpoints(
  mirrors: ReadonlyMap<string, readonly string[]>,
  namespace: string,
): string[] {
  const written = mirrors.get(namespace) ?? mirrors.get('*') ?? [];
  const endpoints = written.map((endpoint) => {
    if (endpoint.includes('://')) return endpoint;
    return `${defaultScheme(urlOf(`dummy://${endpoint}`).host)}://${endpoint}`;
  });
  if (endpoints.some((endpoint) => urlOf(endpoint).host === namespace)) return endpoints;
  const host = defaultHostName(namespace);
  return [...endpoints, `${defaultScheme(host)}://${host}`];
}

/**
 * These endpoints as hosts, with the TLS settings that 1.x reads from `registry.configs`.
 * @throws InvalidConfig, ConfigFileError
 */
export function mirrorHosts(
  { mirrors, configs }: Pick<Registry, 'mirrors' | 'configs'>,
  namespace: string,
): EffectiveHost[] {
  const endpoints = mirrorEndpoints(mirrors, namespace);
  const named = mirrors.get(namespace) ?? mirrors.get('*') ?? [];
  return endpoints.map((endpoint, index) => {
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
  if (!url) throw new InvalidConfig('invalid', 'an endpoint of registry.mirrors is not a URL');
  return url;
}
