/** Opens the fleet of agents: discovery by the setting `agents`, and mutual TLS. */
import { watchTlsSecret } from '../../src/cluster/tls-secret.ts';
import { createConnection } from '../../src/fleet/connection.ts';
import { agentNameOn, agentServerName } from '../../src/certificates/agent-names.ts';
import { endpointSliceDiscovery, staticDiscovery, type Discovery } from '../../src/fleet/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { EndpointSlice } from '../../src/kube/api/objects.ts';
import { startReflector, type NamedObject } from '../../src/kube/watch/reflector.ts';
import { openTlsFiles, type TlsReports, type TlsSource } from '../../src/serving/tls-files.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { UsageError } from '../program/exit.ts';
import { paths } from '../../src/kube/api/paths.ts';

export interface OpenFleetOptions
  extends
    Pick<Configuration, 'agents' | 'agentTlsDir'>,
    Partial<Pick<Configuration, 'certificates' | 'pullSecretNodes'>> {
  readonly client: KubeClient | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The Secret with the client certificate, if `agentTlsDir` is not set. It may appear later. */
  readonly clientSecret?: NamedObject | undefined;
}

/** Connects to the agents. @returns undefined if no agents are configured */
export async function openFleet(options: OpenFleetOptions) {
  const { agents, log, metrics } = options;
  if (agents.length === 0) return undefined;
  const tls = await clientTls(options);
  const discovery = discover(options);
  const serverNameOf = serverNames(discovery, options);
  const pullSecretNodes = watchPullSecretNodes(options);
  const connection = createConnection({ tls, serverNameOf });
  const fleet = createFleet({
    discovery,
    connection,
    pullSecretNodes,
    clock: systemClock,
    log,
    metrics,
  });
  return {
    fleet,
    close: async () => {
      fleet.close();
      discovery.close?.();
      pullSecretNodes?.close();
      await connection.close();
    },
  };
}

async function clientTls({
  agentTlsDir: dir,
  clientSecret,
  log,
  metrics,
}: OpenFleetOptions): Promise<TlsSource> {
  const reports: TlsReports = { use: 'client', log, metrics };
  if (dir !== undefined) return await openTlsFiles({ ...reports, dir, ca: true });
  if (clientSecret) return watchTlsSecret({ ...clientSecret, ...reports });
  throw new UsageError(
    'agents require mutual TLS: set --agent-tls-dir to a directory with tls.crt, tls.key and ca.crt',
  );
}

/** No agent has it. */
const noName = 'unknown.invalid';

/** Agents request certificates of the controller for their nodes, which only EndpointSlices name. */
function serverNames(
  discovery: Discovery,
  { agents, certificates }: Pick<OpenFleetOptions, 'agents' | 'certificates'>,
): (url: string) => string {
  if (certificates === 'external' || !agents[0]?.startsWith(slicesPrefix)) return () => agentServerName;
  let names: ReadonlyMap<string, string> = new Map();
  const update = (): void => {
    const known = discovery.current();
    names = new Map(known.flatMap(({ url, node }) => (node === undefined ? [] : [[url, agentNameOn(node)]])));
  };
  discovery.onChange(update);
  update();
  // Never the shared name: its key is in a Secret that every node with an agent can read.
  return (url) => names.get(url) ?? noName;
}

const slicesPrefix = 'endpointslices:';

/** Watches the nodes that match the selector: the API server reads it, and no labels are kept. */
function watchPullSecretNodes({ pullSecretNodes: selector, client, log, metrics }: OpenFleetOptions) {
  if (selector === undefined) return undefined;
  if (client === undefined) {
    throw new UsageError('pullSecretNodes requires a cluster: run in a pod or set --kubeconfig');
  }
  const path = paths.nodes();
  const nodes = startReflector({ client, path, labelSelector: selector, trim: () => true, log, metrics });
  return {
    selector,
    has: (node: string) => nodes.get('', node) === true,
    ready: (signal: AbortSignal) => nodes.ready(signal).catch(() => undefined),
    close: () => nodes.stop(),
  };
}

/** Either a list of URLs or one discovery location. */
function discover(options: OpenFleetOptions): Discovery & { readonly close?: () => void } {
  const { agents, client, log, metrics } = options;
  if (agents.every((agent) => agent.startsWith('https://'))) return staticDiscovery(agents);
  const [location, ...more] = agents;
  if (location === undefined || more.length > 0) {
    throw new UsageError('--agents takes URLs, or one endpointslices: location');
  }
  const [, namespace = '', service = ''] = /^endpointslices:([^/]+)\/(.+)$/.exec(location) ?? [];
  if (client === undefined) {
    throw new UsageError(`${location} requires a cluster: run in a pod or set --kubeconfig`);
  }
  const slices = startReflector<EndpointSlice>({
    client,
    path: paths.endpointSlices(namespace),
    labelSelector: `kubernetes.io/service-name=${service}`,
    trim: (slice) => slice,
    log,
    metrics,
  });
  return { ...endpointSliceDiscovery(slices, 'api'), close: () => slices.stop() };
}
