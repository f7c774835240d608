/** `docker.MatchLocalhost` (containerd `core/remotes/docker/registry.go`): hosts with plain HTTP. */
import { isLocalhost } from '../../../daemon/containerd/endpoint.ts';
import { splitHostPort } from '../../../src/names/host-port.ts';

/** A port that is announced but missing is an error upstream. */
export function matchLocalhost(host: string): boolean {
  if (host === '::1' || host === '[::1]') return true;
  const split = splitHostPort(host);
  if (split === undefined) return !host.includes(':') && isLocalhost(host);
  return split.port !== '' && isLocalhost(host);
}
