/**
 * Reach: which addresses and ports a request may connect to. The author of a pod chooses the registry's host,
 * and a registry chooses its realm and redirects, but the connection has the identity of a node. So every
 * address is checked after name resolution, and only a checked address is dialed.
 *
 * - An endpoint may be public or private. Loopback is allowed if the image names it (`localhost:5000`, as in
 *   containerd) or the endpoint was configured, never for a name that merely resolves to it.
 * - A realm or redirect may be as near as the registry itself: see `isForbiddenAddress`.
 * - Ports that only a node's own services use are refused, unless the endpoint was configured.
 */
import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { addressKind, hostOf, isForbiddenAddress, portOf, type AddressKind } from './address.ts';
import { TransportError } from '../transport-error.ts';

/** kubelet, kube-proxy, etcd, API server, controller manager, scheduler, cloud controller, containerd. */
const nodePorts: ReadonlySet<number> = new Set([
  2379, 2380, 2381, 6443, 10248, 10249, 10250, 10255, 10256, 10257, 10258, 10259, 10260, 1338,
]);

/** Finds all addresses of a name, as `dns.lookup` does. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface Reach {
  /** Equal for equal rules: requests share connections only if their rules are equal. */
  readonly id: string;
  /** Why an address is refused, in words; `undefined` if it is allowed. */
  refusal(address: string): string | undefined;
  /** The same for a port. */
  portRefusal(port: number): string | undefined;
}

const mayBeRegistries: ReadonlySet<AddressKind> = new Set<AddressKind>(['public', 'private', 'loopback']);

export function endpointReach(endpoint: { readonly base: string; readonly origin: string }): Reach {
  const configured = endpoint.origin !== 'default';
  const loopback = configured || namesLoopback(endpoint.base);
  return {
    id: `endpoint loopback=${loopback}`,
    refusal: (address) => {
      const kind = addressKind(address);
      if (!kind || !mayBeRegistries.has(kind)) return `${kind ?? 'unknown'} addresses are never registries`;
      return kind === 'loopback' && !loopback ? 'the name resolves to this machine' : undefined;
    },
    portRefusal: (port) => (configured ? undefined : refusePort(port)),
  };
}

/** Reach of a registry's realm or redirect. @param registryIp the registry's; none behind a proxy */
export function targetReach(registryIp: string | undefined): Reach {
  const kind = registryIp === undefined ? 'public' : addressKind(registryIp);
  return {
    id: `target of ${kind}`,
    refusal: (address) =>
      isForbiddenAddress(address, registryIp)
        ? `a ${addressKind(address) ?? 'unknown'} address, which a ${kind} registry may not name`
        : undefined,
    portRefusal: refusePort,
  };
}

function refusePort(port: number): string | undefined {
  return nodePorts.has(port) ? `port ${port} belongs to the node's own services` : undefined;
}

/** Whether the text of a URL names this machine, as Node will dial it. */
export function namesLoopback(url: string): boolean {
  const host = hostOf(new URL(url));
  return host === 'localhost' || addressKind(host) === 'loopback';
}

/** Checks the port, and the address of a literal host. @throws TransportError `refused-address` */
export function checkTarget(url: URL, reach: Reach): void {
  const host = hostOf(url);
  const reason = reach.portRefusal(portOf(url)) ?? (isIP(host) === 0 ? undefined : reach.refusal(host));
  if (reason !== undefined) throw new TransportError('refused-address', url.host, `refused: ${reason}`);
}

/** A `lookup` for `net.connect` that fails if any address of a name is refused. */
export function checkedLookup(reach: Reach, resolve: Resolve = lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      for (const { address } of addresses) {
        const reason = reach.refusal(address);
        if (reason === undefined) continue;
        return callback(new TransportError('refused-address', hostname, `refused: ${reason}`), []);
      }
      const first = addresses[0];
      if (!first) return callback(new TransportError('resolve', hostname, 'the name has no address'), []);
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}
