/**
 * The default host of clients that set a default scheme, and perhaps TLS settings for all hosts (containerd
 * `core/remotes/docker/config/hosts.go` ConfigureHosts). The CRI plugin sets neither.
 */
import { splitHostPort } from '../../../src/names/host-port.ts';

export function hostWithDefaults(namespace: string, scheme: 'http' | 'https', tls: boolean) {
  const httpFallback = scheme === 'http' && tls && splitHostPort(namespace)?.port !== '80';
  return { scheme: httpFallback ? 'https' : scheme, httpFallback };
}
