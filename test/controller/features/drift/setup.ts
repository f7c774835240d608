/** Drift with a real registry: pods in an API server with a store, a cache of facts, and a fake clock. */
import type { Test } from 'tap';
import { createNodeClasses } from '../../../../src/cluster/nodes.ts';
import type { PullSecrets } from '../../../../src/cluster/pull-secrets.ts';
import { createDriftMonitor } from '../../../../src/controller/features/drift/drift.ts';
import { FactsCache } from '../../../../src/images/cache/cache.ts';
import type { ImageFactsSource } from '../../../../src/images/facts/facts.ts';
import { createRegistrySource } from '../../../../src/images/sources/registry-source.ts';
import { captureLog } from '../../../support/captured.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { image as single, multiArch, type Content } from '../../../support/registry/content.ts';
import { clientFor, endpointOf, startRegistry } from '../../../support/registry/client.ts';
import type { TestRegistryOptions } from '../../../support/registry/server.ts';
import { controllerRef, dataAt, putPod as putAnyPod, putReplicaSet } from '../../objects.ts';
import { startLeader } from '../../leader.ts';

export const hour = 3_600_000;
/** Longer than the program's minute, to save time. The requests are the same. */
const roundMs = 30 * 60_000;
const notesPath = '/api/v1/namespaces/archwright/configmaps/archwright-drift';

interface SetupOptions {
  readonly registry?: TestRegistryOptions;
  readonly pullSecrets?: PullSecrets;
  /** By name. Default: one of amd64 and one of arm64. */
  readonly nodes?: Readonly<Record<string, { architecture: string; runtime?: string }>>;
}

interface PodOptions {
  readonly namespace?: string;
  readonly node?: string;
  /** Digest that its node pulled. Default: none. */
  readonly pulled?: Content | undefined;
  readonly pullPolicy?: string;
  readonly phase?: string;
  readonly pullSecrets?: readonly string[];
  /** A ReplicaSet of this name, of a Deployment of the same name. Default: no owner. */
  readonly owner?: string;
  /** Another name of the ReplicaSet. */
  readonly replicaSet?: string;
}

export const withPlatforms = (platforms: string, label = ''): Content => {
  const [first = '', ...more] = platforms.split(' ');
  return more.length === 0 ? single(first, { label }) : multiArch([first, ...more], { label });
};

export type DriftSetup = Awaited<ReturnType<typeof setup>>;

export async function setup(t: Test, options: SetupOptions = {}) {
  const registry = await startRegistry(t, options.registry);
  const clock = createFakeClock();
  const client = clientFor(t, { clock });
  const caching = (source: ImageFactsSource): FactsCache => {
    // A refresh in the background would time out when the clock jumps, and so would the next check.
    const refreshAfterMs = () => Number.POSITIVE_INFINITY;
    const cache = new FactsCache({ source, log: captureLog().log, clock, refreshAfterMs });
    t.teardown(() => cache.close());
    return cache;
  };
  /** The cache of the agent, which goes on under the next leader. */
  const agent = caching(
    createRegistrySource({
      registry: client,
      endpoints: { endpoints: () => Promise.resolve([endpointOf(registry)]), fingerprint: () => '' },
      credentials: { lookup: () => Promise.resolve([]) },
      mayAskAnonymously: () => true,
      clock,
    }),
  );
  let test: Awaited<ReturnType<typeof startLeader>> | undefined;
  const fleet: ImageFactsSource = { lookup: (request, lookup) => agent.get(request, lookup) };
  let cache = caching(fleet);
  let monitor: ReturnType<typeof createDriftMonitor> | undefined;

  /** Starts the next leader, in a new process unless it `keeps` the cache. */
  async function lead({ keeps = false } = {}): Promise<void> {
    const over = test?.store;
    test?.depose();
    if (!keeps) cache = caching(fleet);
    test = await startLeader(t, {
      clock,
      now: clock.now,
      cache,
      ...(over && { over }),
      ...(options.pullSecrets && { pullSecrets: options.pullSecrets }),
    });
    const nodeClasses = createNodeClasses(test.leader.caches.nodes);
    monitor = createDriftMonitor({ ...test.leader, nodeClasses });
  }
  await lead({ keeps: true });
  const current = () => {
    if (test === undefined || monitor === undefined) throw new Error('there is no leader');
    return { test, monitor };
  };
  const { store } = current().test;
  const nodes = options.nodes ?? { a: { architecture: 'amd64' }, b: { architecture: 'arm64' } };
  for (const [name, { architecture, runtime = 'containerd' }] of Object.entries(nodes)) {
    const nodeInfo = { architecture, operatingSystem: 'linux', containerRuntimeVersion: `${runtime}://2.1` };
    store.put(`/api/v1/nodes/${name}`, { status: { nodeInfo } });
  }

  return {
    registry,
    clock,
    store,
    lead,
    get cache() {
      return cache;
    },
    get leader() {
      return current().test;
    },
    /** A repository of the registry. */
    image: (name: string, tag = '1'): string => `${registry.host}/${name}:${tag}`,
    push: (name: string, content: Content, tag = '1'): Content => {
      registry.push(name, tag, content);
      return content;
    },
    pod: (name: string, repository: string, pod: PodOptions = {}): void =>
      putPod(store, registry.host, name, repository, pod),
    /** Lets time pass while the leader checks. */
    advance: async (ms: number): Promise<void> => {
      await current().test.settled();
      for (let left = ms; left > 0; left -= roundMs) {
        await clock.jump(roundMs);
        await current().monitor();
      }
    },
    reconcile: () => current().monitor(),
    /** Requests for manifests, by method. */
    counts: () => ({
      head: registry.counts()['HEAD manifests'] ?? 0,
      get: registry.counts()['GET manifests'] ?? 0,
    }),
    notes: (): Record<string, unknown>[] =>
      Object.values(dataAt(store, notesPath)).map((text) => JSON.parse(text) as Record<string, unknown>),
  };
}

function putPod(
  store: DriftSetup['store'],
  host: string,
  name: string,
  repository: string,
  {
    namespace = 'shop',
    node = 'a',
    pulled,
    pullPolicy,
    phase,
    pullSecrets = [],
    owner,
    replicaSet = owner,
  }: PodOptions,
): void {
  const imageID = pulled === undefined ? '' : `${host}/${repository}@${pulled.digest}`;
  const image = `${host}/${repository}:1`;
  const uid = `rs-${namespace}-${replicaSet}`;
  if (owner !== undefined && replicaSet !== undefined) {
    const deployment = controllerRef('Deployment', owner, { uid: `deployment-${namespace}-${owner}` });
    putReplicaSet(store, replicaSet, deployment, { namespace, uid });
  }
  putAnyPod(store, name, {
    namespace,
    node,
    image,
    imageID,
    ...(pullPolicy && { pullPolicy }),
    ...(phase && { phase }),
    owner: replicaSet === undefined ? null : controllerRef('ReplicaSet', replicaSet, { uid }),
    spec: { imagePullSecrets: pullSecrets.map((each) => ({ name: each })) },
  });
}
