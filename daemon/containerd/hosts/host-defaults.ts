/**
 * From what is configured to the hosts that are asked: the last one becomes the upstream's default where none is named, and hosts
 * that are written with `http://` but have TLS settings are asked by https first (containerd
 * `core/remotes/docker/config/hosts.go` ConfigureHosts).
 */
import { capabilityNames, type HostConfig } from './hosts-file.ts';
import { isLocalhost, splitHostPort } from './localhost.ts';
import type { ContainerdRules } from '../config/rules.ts';

/** A host as it is asked. */
export interface EffectiveHost extends HostConfig {
  /** https, then http where the host does not speak TLS. */
  readonly httpFallback: boolean;
  /** It is the namespace's own default host, not one that a file names. */
  readonly isDefault: boolean;
}

/** What clients of containerd other than the kubelet may set; the CRI plugin sets nothing. */
export interface HostDefaults {
  readonly scheme?: 'http' | 'https' | undefined;
  /** Whether TLS settings were given for all hosts. */
  readonly tls?: boolean | undefined;
}

/**
 * @param configured of the namespace's directory; undefined where it has none
 * @returns at least one host, in the order in which they are asked
 */
export function effectiveHosts(
  configured: readonly HostConfig[] | undefined,
  namespace: string,
  rules: ContainerdRules,
  defaults: HostDefaults = {},
): EffectiveHost[] {
  const hosts = configured ?? [empty];
  return hosts.map((host, index) => {
    const isDefault = index === hosts.length - 1 && host.host === '';
    const filled = isDefault ? { ...host, ...defaultHost(namespace, rules, defaults) } : host;
    const tls = defaults.tls === true || hasTls(filled);
    const port = splitHostPort(filled.host)?.port ?? '';
    const httpFallback = rules.httpFallback && filled.scheme === 'http' && tls && port !== '80';
    return { ...filled, ...(httpFallback && { scheme: 'https' }), httpFallback, isDefault };
  });
}

/** Where a namespace is served when no file says otherwise (containerd `docker.DefaultHost`). */
export function defaultHostName(namespace: string): string {
  return namespace === 'docker.io' ? 'registry-1.docker.io' : namespace;
}

const empty: HostConfig = { scheme: '', host: '', path: '', capabilities: [], headers: [] };

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
    // 1.6: this machine speaks plain HTTP unless a client says otherwise.
    const plain = (defaults.scheme ?? 'http') === 'http';
    return { ...common, scheme: defaults.scheme ?? 'http', ...(plain && { skipVerify: true }) };
  }
  if (defaults.scheme !== undefined) return { ...common, scheme: defaults.scheme };
  const port = splitHostPort(namespace)?.port ?? '';
  const scheme = port === '' || port === '443' ? 'https' : 'http';
  // No certificate holds for this machine; with port 80 nothing is verified anyway.
  return { ...common, scheme, ...(port !== '80' && { skipVerify: true }) };
}
