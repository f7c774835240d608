/**
 * A cluster for tests: a real control plane (`control-plane.ts`) with nodes of any architecture that exist only as objects (`nodes.ts`).
 * Tests wait for changes by watches (`watch.ts`). archwright runs beside it as child processes (`archwright.ts`), and asks registries
 * with scripted images (`images.ts`). A cluster starts in some ten seconds and leaves nothing behind:
 *
 *   const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 } });
 *   t.teardown(() => cluster.stop());
 *   await cluster.create(podOf('web', image));
 *   await nodeOf(cluster, 'web');
 *
 *   ARCHWRIGHT_E2E_KEEP   if set, files and logs of clusters stay; their folders are printed
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kubeconfigAccess } from '../../../src/kube/api/access.ts';
import { createKubeClient, type KubeClient, type Patch } from '../../../src/kube/api/client.ts';
import type { Query } from '../../../src/kube/api/transport.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { say } from '../programs/cache.ts';
import { startControlPlane, type ControlPlane, type ControlPlaneOptions } from './control-plane.ts';
import { createNode, plainNodes, takesPods, type FakeNode, type NodeObject } from './nodes.ts';
import { pathOf } from './paths.ts';
import { waitFor, watch } from './watch.ts';

export interface ClusterOptions extends Omit<ControlPlaneOptions, 'directory'> {
  /** The number of nodes of each architecture, or a list. Default: none. With `apiServerOnly` there can be none. */
  readonly nodes?: Readonly<Record<string, number>> | readonly FakeNode[];
}

export interface Cluster extends Pick<
  ControlPlane,
  'server' | 'identities' | 'stopApiServer' | 'startApiServer'
> {
  /** Files of this cluster, removed when it stops. */
  readonly directory: string;
  readonly logs: string;
  /** An administrator's. */
  readonly kubeconfig: string;
  /** An administrator's, for the program's functions. Tests use the methods below, which have a deadline and throw KubeError. */
  readonly client: KubeClient;
  /** Of each part of the control plane, as it runs now. */
  pids(): ReadonlyMap<string, number>;
  get<T = KubeObject>(path: string, query?: Query): Promise<T>;
  /** The items of a collection. */
  list<T = KubeObject>(path: string, query?: Query): Promise<readonly T[]>;
  /** Creates an object in a collection. */
  post<T = KubeObject>(path: string, object: object, query?: Query): Promise<T>;
  /** Creates an object of any kind. Default namespace: `default`. */
  create<T extends KubeObject = KubeObject>(object: object): Promise<T>;
  patch<T = KubeObject>(path: string, patch: Patch, query?: Query): Promise<T>;
  /** A merge patch. */
  merge<T = KubeObject>(path: string, body: object): Promise<T>;
  delete(path: string, query?: Query): Promise<void>;
  /** Server-side apply of each document of a YAML text. */
  applyYaml(text: string): Promise<void>;
  /** Creates a namespace and waits until it takes pods. */
  createNamespace(name: string, labels?: Readonly<Record<string, string>>): Promise<void>;
  createNodes(nodes: readonly FakeNode[]): Promise<void>;
  /** Registers a function that is called before the cluster stops, in reverse order. */
  onStop(close: () => Promise<void>): void;
  stop(): Promise<void>;
}

/** Deadline for an answer of the API server. */
export const patience = (): AbortSignal => AbortSignal.timeout(30_000);

/**
 * Starts a cluster.
 * @throws Error if it does not become ready; the message has the end of a log
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
  if (access === undefined) throw new TypeError('the kubeconfig that was just written gives no access');
  const client = createKubeClient({ access, userAgent: 'archwright-e2e' });

  /** A namespace takes no pods until it has its default service account. */
  const accountIn = async (namespace: string): Promise<void> => {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    if (options.apiServerOnly === undefined) {
      await waitFor(client, `${accounts}/default`, (account) => account !== undefined);
      return;
    }
    // The API server makes the namespace `default`; its accounts are made by a controller, which does not run.
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
    get: (path, query = {}) => client.get(path, { signal: patience(), query }),
    list: async <T>(path: string, query: Query = {}) =>
      (await client.get<{ readonly items: readonly T[] }>(path, { signal: patience(), query })).items,
    post: (path, object, query = {}) => client.create(path, object, { signal: patience(), query }),
    create: async (object) => cluster.post(await pathOf(client, object), object),
    patch: (path, patch, query = {}) => client.patch(path, patch, { signal: patience(), query }),
    merge: (path, body) => cluster.patch(path, { type: 'merge', body }),
    delete: (path, query = {}) => client.delete(path, { signal: patience(), query }),
    applyYaml: async (text) => {
      for (const body of parseAllDocuments(text).map((document) => document.toJS() as KubeObject | null)) {
        if (body === null) continue;
        const path = `${await pathOf(client, body)}/${body.metadata?.name ?? ''}`;
        await cluster.patch(path, { type: 'apply', body, fieldManager: 'e2e', force: true });
      }
    },
    createNamespace: async (name, labels = {}) => {
      await cluster.post('/api/v1/namespaces', { metadata: { name, labels } });
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
