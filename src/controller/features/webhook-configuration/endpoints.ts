/**
 * Where webhooks are: a Service's ready endpoints (no cluster DNS or kube-proxy needed), or a URL's host. And
 * whether they answer there.
 */
import { request } from 'node:https';
import { isIP } from 'node:net';
import { writeCertificates, type Certificate } from '../../../certificates/pem.ts';
import { bareHost, portOf } from '../../../http/reach/address.ts';
import type { EndpointSlice } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { startReflector, type NamedObject, type Reflector } from '../../../kube/watch/reflector.ts';
import type { ClientConfig, ServiceReference, Webhook } from '../../state/webhooks-file.ts';

export interface ProbeTarget {
  /** Address or name to dial. */
  readonly host: string;
  readonly port: number;
  /** The name in the certificate. */
  readonly serverName: string;
}

/** Identifies a webhook's place. Two configurations of one place differ at most in path and authorities. */
export function placeOf({ service, url }: ClientConfig): string {
  return service ? `${keyOf(service)}:${service.port ?? 443}` : (URL.parse(url ?? '')?.origin ?? '');
}

/** The path of reviews. */
export function pathOf({ service, url }: ClientConfig): string {
  return (service ? service.path : URL.parse(url ?? '')?.pathname) ?? '/';
}

function keyOf({ namespace, name }: ServiceReference): string {
  return `${namespace}/${name}`;
}

/** Names of the port, if the Service has several: the chart's, and the usual one. */
const portNames = ['webhook', 'https'];

export type Endpoints = ReturnType<typeof createEndpoints>;

export function createEndpoints(
  options: Pick<NamedObject, 'client' | 'log' | 'clock'> & { readonly onChange: () => void },
) {
  const watches = new Map<string, Reflector<EndpointSlice>>();

  function watchOf(service: ServiceReference): Reflector<EndpointSlice> {
    const { onChange, ...common } = options;
    const known = watches.get(keyOf(service));
    if (known !== undefined) return known;
    const watch = startReflector<EndpointSlice>({
      ...common,
      path: paths.endpointSlices(service.namespace),
      labelSelector: `kubernetes.io/service-name=${service.name}`,
      trim: (slice) => slice,
    });
    watch.onChange(onChange);
    watches.set(keyOf(service), watch);
    return watch;
  }

  function ofService(service: ServiceReference): readonly ProbeTarget[] | string {
    const watch = watchOf(service);
    if (!watch.health().synced) return `the endpoints of Service ${service.name} are not known yet`;
    const ready = [...watch.values()].flatMap(readyIn);
    if (ready.length === 0) return `Service ${service.name} has no ready endpoint`;
    const byPort = Map.groupBy(ready, ({ portName }) => portName);
    const [only] = byPort.keys();
    const wanted = byPort.size === 1 ? only : portNames.find((name) => byPort.has(name));
    const found = wanted === undefined ? undefined : byPort.get(wanted);
    const serverName = `${service.name}.${service.namespace}.svc`;
    return (
      found?.map(({ host, port }) => ({ host, port, serverName })) ??
      `Service ${service.name} has no port named ${portNames.join(' or ')}`
    );
  }

  return {
    /** The endpoints of a webhook. @returns a text: why there are none */
    targetsOf: ({ service, url }: ClientConfig): readonly ProbeTarget[] | string => {
      if (service) return ofService(service);
      const parsed = URL.parse(url ?? '');
      if (parsed === null) return 'it has neither a URL nor a Service';
      const host = bareHost(parsed);
      return [{ host, port: portOf(parsed), serverName: host }];
    },
    /** Stops watching other Services than these. */
    keep: (configs: readonly ClientConfig[]): void => {
      const wanted = new Set(configs.flatMap(({ service }) => (service ? [keyOf(service)] : [])));
      for (const [key, watch] of watches) {
        if (wanted.has(key)) continue;
        watch.stop();
        watches.delete(key);
      }
    },
  };
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

/**
 * Probes the endpoints of a webhook.
 * @param path that of reviews, which a webhook without it answers with 404
 * @returns for each endpoint, why no certificate of the Secret's authorities came; `undefined`: it did. Never
 *   empty. Complete if every endpoint answers; else endpoints after the first failure may be missing.
 */
export type Probe = (webhook: Webhook, path: string) => Promise<readonly (string | undefined)[]>;

/** Probes at the same time. If all of the first ones fail, the others are not probed: no webhook answers. */
const probesAtOnce = 20;

/** The probes of one reconcile. @param bundle the authorities to trust */
export function createProbe(
  endpoints: Endpoints,
  bundle: readonly Certificate[],
  signal: AbortSignal,
): Probe {
  const probed = new Map<string, ReturnType<Probe>>();
  const ca = writeCertificates(bundle);
  return ({ clientConfig }, path) => {
    const key = `${placeOf(clientConfig)} ${path}`;
    const known = probed.get(key) ?? probeAll(endpoints.targetsOf(clientConfig), path, ca, signal);
    probed.set(key, known);
    return known;
  };
}

async function probeAll(
  targets: readonly ProbeTarget[] | string,
  path: string,
  ca: string,
  signal: AbortSignal,
) {
  if (typeof targets === 'string') return [targets];
  const results: (string | undefined)[] = [];
  while (results.length < targets.length) {
    const next = targets.slice(results.length, results.length + probesAtOnce);
    results.push(...(await Promise.all(next.map((target) => probeWebhook(target, path, ca, signal)))));
    if (results.some((why) => why !== undefined)) break;
  }
  return results;
}

/** A webhook that takes longer for its own state is too slow for admissions. */
const timeoutMs = 2000;

/**
 * Requests a path as the API server reaches the webhook: by TLS, with the same authorities.
 * @param ca authorities to trust, PEM
 * @returns why it does not answer; `undefined`: it does
 */
export function probeWebhook(
  { host, port, serverName }: ProbeTarget,
  path: string,
  ca: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return new Promise((resolve) => {
    const sent = request(
      {
        host,
        port,
        path,
        ca,
        // As the API server (Go, crypto/x509): an authority in `caBundle` need not be a root.
        allowPartialTrustChain: true,
        minVersion: 'TLSv1.2',
        agent: false,
        signal: deadline,
        // An address is no server name (RFC 6066, 3); it is still compared with the certificate.
        ...(isIP(serverName) === 0 && { servername: serverName }),
        headers: { 'user-agent': 'archwright-controller' },
      },
      (answer) => {
        const status = answer.statusCode ?? 0;
        // The body is not needed.
        answer.destroy();
        resolve(status === 200 ? undefined : `it answered with status ${status}`);
      },
    );
    sent.on('error', (error) => {
      resolve(deadline.aborted ? `no answer within ${timeoutMs} ms` : error.message.slice(0, 200));
    });
    sent.end();
  });
}
