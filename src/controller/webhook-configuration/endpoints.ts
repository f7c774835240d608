/** Where webhooks are: the addresses of the ready endpoints of a Service, which needs no cluster DNS and no kube-proxy; or the host of a URL. */
import type { KubeClient } from '../../kube/api/client.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { EndpointSlice, KubeObject } from '../../kube/api/objects.ts';
import { startReflector, type Reflector } from '../../kube/watch/reflector.ts';
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { ProbeTarget } from './probe.ts';
import type { ClientConfig, ServiceReference } from './webhooks-file.ts';
import { paths } from '../../kube/api/paths.ts';

export interface Endpoints {
  /**
   * The endpoints of a webhook.
   * @returns a text: why there are none
   * @throws KubeError
   */
  of(config: ClientConfig, signal: AbortSignal): Promise<readonly ProbeTarget[] | string>;
  /** Stops watching other Services than these. */
  keep(configs: readonly ClientConfig[]): void;
  stop(): void;
}

export interface EndpointsOptions {
  readonly client: KubeClient;
  readonly log: Log;
  readonly onChange: () => void;
  readonly clock: Clock;
}

interface Service extends KubeObject {
  readonly spec?: { readonly ports?: readonly { readonly name?: string; readonly port?: number }[] };
}

/** Identifies a webhook's place. Two configurations of one place differ at most in path and authorities. */
export function placeOf({ service, url }: ClientConfig): string {
  if (service) return `${service.namespace}/${service.name}:${service.port ?? 443}`;
  return url === undefined || !URL.canParse(url) ? '' : new URL(url).origin;
}

/** Names of the port if the Service may not be read or is just being created: the chart's, and the usual one. */
const usual = ['webhook', 'https'];

export function createEndpoints({ client, log, onChange, clock }: EndpointsOptions): Endpoints {
  const watches = new Map<string, Reflector<EndpointSlice>>();

  function watchOf({ namespace, name }: ServiceReference): Reflector<EndpointSlice> {
    const key = `${namespace}/${name}`;
    let watch = watches.get(key);
    if (watch === undefined) {
      watch = startReflector<EndpointSlice>({
        client,
        path: paths.endpointSlices(namespace),
        labelSelector: `kubernetes.io/service-name=${name}`,
        trim: (slice) => slice,
        log,
        clock,
      });
      watch.onChange(onChange);
      watches.set(key, watch);
    }
    return watch;
  }

  /** The name of a Service's port; `undefined`: the Service may not be read, or does not exist. */
  async function portName(
    { namespace, name, port }: ServiceReference,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const path = paths.services(namespace, name);
    const service = await ignoring(['forbidden', 'not-found'], client.get<Service>(path, { signal }));
    const found = service?.spec?.ports?.find((each) => each.port === (port ?? 443));
    return found && (found.name ?? '');
  }

  async function ofService(
    service: ServiceReference,
    signal: AbortSignal,
  ): Promise<readonly ProbeTarget[] | string> {
    const watch = watchOf(service);
    if (!watch.health().synced) return `the endpoints of Service ${service.name} are not known yet`;
    const ready = [...watch.values()].flatMap((slice) => readyIn(slice));
    if (ready.length === 0) return `Service ${service.name} has no ready endpoint`;
    const names = new Set(ready.map(({ portName }) => portName));
    const [only] = names;
    const wanted =
      names.size === 1 ? only : ((await portName(service, signal)) ?? usual.find((name) => names.has(name)));
    const serverName = `${service.name}.${service.namespace}.svc`;
    const targets = ready
      .filter((each) => each.portName === wanted)
      .map(({ host, port }) => ({ host, port, serverName }));
    return targets.length > 0 ? targets : `Service ${service.name} has no port ${service.port ?? 443}`;
  }

  return {
    of: async ({ service, url }, signal) => {
      if (service) return await ofService(service, signal);
      if (url === undefined || !URL.canParse(url)) return 'it has neither a URL nor a Service';
      const { hostname, port } = new URL(url);
      const host = hostname.replace(/^\[|\]$/g, '');
      return [{ host, port: port === '' ? 443 : Number(port), serverName: host }];
    },
    keep: (configs) => {
      const wanted = new Set(
        configs.flatMap(({ service }) => (service ? [`${service.namespace}/${service.name}`] : [])),
      );
      for (const [key, watch] of watches) {
        if (wanted.has(key)) continue;
        watch.stop();
        watches.delete(key);
      }
    },
    stop: () => {
      for (const watch of watches.values()) watch.stop();
      watches.clear();
    },
  };
}

function readyIn({ endpoints, ports }: EndpointSlice) {
  return (endpoints ?? []).flatMap(({ addresses, conditions }) => {
    const [host] = addresses;
    // Unknown counts as ready (discovery.k8s.io/v1, EndpointConditions).
    if (host === undefined || conditions?.ready === false) return [];
    return (ports ?? []).flatMap(({ name = '', port }) =>
      port === undefined ? [] : [{ host, port, portName: name }],
    );
  });
}
