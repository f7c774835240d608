/**
 * Fills configured hosts with defaults: a last host without a name becomes the namespace's default host, and hosts with `http://`
 * and TLS settings are tried by https first (containerd `core/remotes/docker/config/hosts.go` ConfigureHosts).
 */
import { capabilityNames, noHost, type HostConfig } from './hosts-file.ts';
import { isLocalhost, splitHostPort } from './localhost.ts';
import type { ContainerdRules } from '../config/rules.ts';

/** A host with all defaults. */
export interface EffectiveHost extends HostConfig {
  /** https first, then http if the host does not speak TLS. */
  readonly httpFallback: boolean;
  /** The namespace's default host, not one from a file. */
  readonly isDefault: boolean;
}

/** Defaults of clients other than the kubelet. The CRI plugin sets none. */
export interface HostDefaults {
  readonly scheme?: 'http' | 'https' | undefined;
  /** Whether there are TLS settings for all hosts. */
  readonly tls?: boolean | undefined;
}

/**
 * @param configured hosts of the namespace's directory; undefined without a directory
 * @returns at least one host, in the order of requests
 */
export function effectiveHosts(
  configured: readonly HostConfig[] | undefined,
  namespace: string,
  rules: ContainerdRules,
  defaults: HostDefaults = {},
): EffectiveHost[] {
  const hosts = configured ?? [noHost];
  return hosts.map((host, index) => {
    const isDefault = index === hosts.length - 1 && host.host === '';
    const filled = isDefault ? { ...host, ...defaultHost(namespace, rules, defaults) } : host;
    const tls = defaults.tls === true || hasTls(filled);
    const port = splitHostPort(filled.host)?.port ?? '';
    const httpFallback = rules.httpFallback && filled.scheme === 'http' && tls && port !== '80';
    return { ...filled, ...(httpFallback && { scheme: 'https' }), httpFallback, isDefault };
  });
}

/** The host of a namespace without configuration (containerd `docker.DefaultHost`). */
export function defaultHostName(namespace: string): string {
  return namespace === 'docker.io' ? 'registry-1.docker.io' : namespace;
}

function hasTls({ ca, client, skipVerify }: HostConfig): boolean {
  return ca !== undefined || client !== undefined || skipVerify !== undefined;
}

function defaultHost(namespace: string, rules: ContainerdRules, defaults: HostDefaults): Partial<HostConfig> {
  const common = {
    host: defaultHostName(namespace),
    path: '/v2',
    capabilities: capabilityNames.filter((name) => name !== 'referrers' || rules.referrers),
  };
  if (namespace === 'docker.io') return { ...common, scheme: 'https' };
  if (!isLocalhost(namespace)) return { ...common, scheme: defaults.scheme ?? 'https' };
  if (!rules.httpFallback) {
    // 1.6: plain HTTP for localhost, unless a client sets a scheme.
    const plain = (defaults.scheme ?? 'http') === 'http';
    return { ...common, scheme: defaults.scheme ?? 'http', ...(plain && { skipVerify: true }) };
  }
  if (defaults.scheme !== undefined) return { ...common, scheme: defaults.scheme };
  const port = splitHostPort(namespace)?.port ?? '';
  const scheme = port === '' || port === '443' ? 'https' : 'http';
  // Certificates for localhost do not verify. Port 80 has no TLS.
  return { ...common, scheme, ...(port !== '80' && { skipVerify: true }) };
}
