/**
 * A cluster for tests: a real control plane (`control-plane.ts`) with nodes of any architecture that exist as objects only (`nodes.ts`). What
 * happens in it is waited for by watches (`watch.ts`). The program itself runs beside it as its users run it (`archwright.ts`), and asks
 * registries with scripted images (`images.ts`). Each test file has a cluster of its own, which takes some ten seconds to start and
 * leaves nothing behind:
 *
 *   const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 } });
 *   t.teardown(() => cluster.stop());
 *   await cluster.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: … });
 *   await waitFor(cluster.client, '/api/v1/namespaces/default/pods/web', (pod) => pod?.spec.nodeName !== undefined);
 *
 *   ARCHWRIGHT_E2E_KEEP   where it is set, files and logs of clusters stay; their folders are printed
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kubeconfigAccess } from '../../../src/kube/api/access.ts';
import { createKubeClient, type KubeClient } from '../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { say } from '../programs/cache.ts';
import { startControlPlane, type ControlPlane, type ControlPlaneOptions } from './control-plane.ts';
import { createNode, plainNodes, takesPods, type FakeNode, type NodeObject } from './nodes.ts';
import { pathOf } from './paths.ts';
import { waitFor, watch } from './watch.ts';

export interface ClusterOptions extends Omit<ControlPlaneOptions, 'directory'> {
  /** How many nodes of each architecture, or each by itself. None by default, and none where only the API server runs. */
  readonly nodes?: Readonly<Record<string, number>> | readonly FakeNode[];
}

export interface Cluster extends Pick<
  ControlPlane,
  'server' | 'identities' | 'stopApiServer' | 'startApiServer'
> {
  /** Files of this cluster; removed at its end. */
  readonly directory: string;
  readonly logs: string;
  /** Of an administrator. */
  readonly kubeconfig: string;
  /** As an administrator. */
  readonly client: KubeClient;
  /** Of each part of the control plane, as it runs now. */
  pids(): ReadonlyMap<string, number>;
  /** The API server crashes and comes back; resolves when it is ready. */
  restartApiServer(): Promise<void>;
  /**
   * Creates an object of any kind; where it has no namespace, in `default`.
   * @throws KubeError
   */
  create<T extends KubeObject = KubeObject>(object: object): Promise<T>;
  /** Server-side apply of each document of a YAML text. */
  applyYaml(text: string): Promise<void>;
  /** Creates a namespace and waits until it takes pods. */
  createNamespace(name: string, labels?: Readonly<Record<string, string>>): Promise<void>;
  createNodes(nodes: readonly FakeNode[]): Promise<void>;
  /** Called before the cluster goes, in the reverse order. */
  onStop(close: () => Promise<void>): void;
  stop(): Promise<void>;
}

/** For answers of the API server. */
export const patience = (): AbortSignal => AbortSignal.timeout(30_000);

/**
 * Starts a cluster.
 * @throws where it does not become ready; the message has the end of a log
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { nodes = {}, ...more } = options;
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-'));
  const remove = async (): Promise<void> => {
    if (process.env['ARCHWRIGHT_E2E_KEEP'] === undefined) await rm(directory, { recursive: true });
    else say(`kept: ${directory}`);
  };
  const plane = await startControlPlane({ directory, ...more }).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const kubeconfig = await plane.identities.kubeconfig(
    { cn: 'admin', group: 'system:masters' },
    plane.server,
  );
  const access = await kubeconfigAccess({ path: kubeconfig });
  if (access === undefined) throw new TypeError('no access by a kubeconfig that was just written');
  const client = createKubeClient({ access, userAgent: 'archwright-e2e' });

  /** Without its default service account a namespace takes no pods. */
  const accountIn = async (namespace: string): Promise<void> => {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    if (options.apiServerOnly === undefined) {
      await waitFor(client, `${accounts}/default`, (account) => account !== undefined);
      return;
    }
    // The API server makes the namespace `default`, but no accounts.
    await waitFor(client, `/api/v1/namespaces/${namespace}`, (found) => found !== undefined);
    await client.create(accounts, { metadata: { name: 'default' } }, { signal: patience() });
  };
  const closers: (() => Promise<void>)[] = [];

  const cluster: Cluster = {
    server: plane.server,
    identities: plane.identities,
    directory,
    logs: join(directory, 'logs'),
    kubeconfig,
    client,
    pids: () => new Map([...plane.parts].map(([name, { pid }]) => [name, pid])),
    stopApiServer: () => plane.stopApiServer(),
    startApiServer: () => plane.startApiServer(),
    restartApiServer: async () => {
      await plane.stopApiServer();
      await plane.startApiServer();
    },
    create: async (object) => client.create(await pathOf(client, object), object, { signal: patience() }),
    applyYaml: async (text) => {
      for (const document of parseAllDocuments(text)) {
        const body = document.toJS() as KubeObject | null;
        if (body === null) continue;
        const path = `${await pathOf(client, body)}/${body.metadata?.name ?? ''}`;
        await client.patch(
          path,
          { type: 'apply', body, fieldManager: 'e2e', force: true },
          { signal: patience() },
        );
      }
    },
    createNamespace: async (name, labels = {}) => {
      await client.create('/api/v1/namespaces', { metadata: { name, labels } }, { signal: patience() });
      await accountIn(name);
    },
    createNodes: async (wanted) => {
      for (const node of wanted) await createNode(client, node);
      const watched = await watch<NodeObject>(client, '/api/v1/nodes');
      try {
        await watched.until('nodes are ready', (found) =>
          wanted.every(({ name }) => takesPods(found.get(name))),
        );
      } finally {
        watched.close();
      }
    },
    onStop: (close) => void closers.push(close),
    stop: async () => {
      for (const close of closers.splice(0).reverse()) await close();
      client.close();
      await plane.stop();
      await remove();
    },
  };
  try {
    await accountIn('default');
    await cluster.createNodes(isList(nodes) ? nodes : plainNodes(nodes));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

function isList(nodes: NonNullable<ClusterOptions['nodes']>): nodes is readonly FakeNode[] {
  return Array.isArray(nodes);
}
