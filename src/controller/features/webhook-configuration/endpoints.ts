/** Where webhooks are: a Service's ready endpoints (no cluster DNS or kube-proxy needed), or a URL's host. */
import { bareHost, portOf } from '../../../http/reach/address.ts';
import type { EndpointSlice } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { startReflector, type NamedObject, type Reflector } from '../../../kube/watch/reflector.ts';
import type { ClientConfig, ServiceReference } from '../../state/webhooks-file.ts';

export interface ProbeTarget {
  /** Address or name to dial. */
  readonly host: string;
  readonly port: number;
  /** The name in the certificate. */
  readonly serverName: string;
}

interface EndpointsOptions extends Pick<NamedObject, 'client' | 'log' | 'clock'> {
  readonly onChange: () => void;
}

/** Identifies a webhook's place. Two configurations of one place differ at most in path and authorities. */
export function placeOf({ service, url }: ClientConfig): string {
  if (service) return `${keyOf(service)}:${service.port ?? 443}`;
  return url === undefined || !URL.canParse(url) ? '' : new URL(url).origin;
}

/** The path of reviews. */
export function pathOf({ service, url }: ClientConfig): string {
  if (service) return service.path ?? '/';
  return url === undefined || !URL.canParse(url) ? '/' : new URL(url).pathname;
}

function keyOf({ namespace, name }: ServiceReference): string {
  return `${namespace}/${name}`;
}

/** Names of the port, if the Service has several: the chart's, and the usual one. */
const portNames = ['webhook', 'https'];

export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #watches = new Map<string, Reflector<EndpointSlice>>();

  constructor(options: EndpointsOptions) {
    this.#options = options;
  }

  /** The endpoints of a webhook. @returns a text: why there are none */
  of({ service, url }: ClientConfig): readonly ProbeTarget[] | string {
    if (service) return this.#ofService(service);
    if (url === undefined || !URL.canParse(url)) return 'it has neither a URL nor a Service';
    const parsed = new URL(url);
    const host = bareHost(parsed);
    return [{ host, port: portOf(parsed), serverName: host }];
  }

  /** Stops watching other Services than these. */
  keep(configs: readonly ClientConfig[]): void {
    const wanted = new Set(configs.flatMap(({ service }) => (service ? [keyOf(service)] : [])));
    for (const [key, watch] of this.#watches) {
      if (wanted.has(key)) continue;
      watch.stop();
      this.#watches.delete(key);
    }
  }

  #ofService(service: ServiceReference): readonly ProbeTarget[] | string {
    const watch = this.#watchOf(service);
    if (!watch.health().synced) return `the endpoints of Service ${service.name} are not known yet`;
    const ready = [...watch.values()].flatMap(readyIn);
    if (ready.length === 0) return `Service ${service.name} has no ready endpoint`;
    const names = new Set(ready.map(({ portName }) => portName));
    const [only] = names;
    const wanted = names.size === 1 ? only : portNames.find((name) => names.has(name));
    const serverName = `${service.name}.${service.namespace}.svc`;
    const targets = ready
      .filter(({ portName }) => portName === wanted)
      .map(({ host, port }) => ({ host, port, serverName }));
    return targets.length > 0
      ? targets
      : `Service ${service.name} has no port named ${portNames.join(' or ')}`;
  }

  #watchOf(service: ServiceReference): Reflector<EndpointSlice> {
    const { client, log, onChange, clock } = this.#options;
    const known = this.#watches.get(keyOf(service));
    if (known !== undefined) return known;
    const watch = startReflector<EndpointSlice>({
      client,
      path: paths.endpointSlices(service.namespace),
      labelSelector: `kubernetes.io/service-name=${service.name}`,
      trim: (slice) => slice,
      log,
      clock,
    });
    watch.onChange(onChange);
    this.#watches.set(keyOf(service), watch);
    return watch;
  }
}

function readyIn({ endpoints, ports }: EndpointSlice) {
  return (endpoints ?? []).flatMap(({ addresses: [host], conditions }) => {
    // Unknown counts as ready (discovery.k8s.io/v1, EndpointConditions).
    if (host === undefined || conditions?.ready === false) return [];
    return (ports ?? []).flatMap(({ name: portName = '', port }) =>
      port === undefined ? [] : [{ host, port, portName }],
    );
  });
}
