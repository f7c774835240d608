/**
 * A cluster for tests: a real control plane with nodes as mere objects (`control-plane/`). Tests wait by
 * watches. archwright runs as child processes, with registries of scripted images (`archwright/`). Starts in
 * about ten seconds and leaves nothing behind:
 *
 *   const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 } }, t);
 *   await cluster.create(podOf('web', image));
 *   await nodeOf(cluster, 'web');
 *
 *   ARCHWRIGHT_E2E_KEEP   if set, files and logs of clusters stay; their folders are printed
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parseAllDocuments } from 'yaml';
import { kubeconfigAccess } from '../../../src/kube/api/access.ts';
import { createKubeClient, type KubeClient, type Patch } from '../../../src/kube/api/client.ts';
import type { Query } from '../../../src/kube/api/transport.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { say } from '../programs/cache.ts';
import {
  startControlPlane,
  type ControlPlane,
  type ControlPlaneOptions,
} from './control-plane/control-plane.ts';
import type { Identities } from './control-plane/identities.ts';
import {
  nodeToCreate,
  plainNodes,
  takesPods,
  type FakeNode,
  type NodeObject,
} from './control-plane/nodes.ts';
import { isBinding, untilGranted } from './control-plane/rights.ts';
import { waitFor, watch, type Watched } from './control-plane/watch.ts';

export interface ClusterOptions extends Omit<ControlPlaneOptions, 'directory'> {
  /** Number of nodes by architecture, or a list. Default: none. With `apiServerOnly`: always none. */
  readonly nodes?: Readonly<Record<string, number>> | readonly FakeNode[];
}

/** Deadline for a response of the API server. */
export const patience = (): AbortSignal => AbortSignal.timeout(30_000);

/** Namespaces that the API server makes. */
const systemNamespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Kinds that tests make, by their API version. */
const kinds = {
  v1: ['ConfigMap', 'Endpoints', 'Node', 'Pod', 'Secret', 'Service', 'ServiceAccount'],
  'admissionregistration.k8s.io/v1': [
    'MutatingAdmissionPolicy',
    'MutatingAdmissionPolicyBinding',
    'MutatingWebhookConfiguration',
  ],
  'arch.example/v1alpha1': ['ArchitectureRollout', 'ClusterPodPlacementConfig'],
  'rbac.authorization.k8s.io/v1': ['ClusterRole', 'ClusterRoleBinding', 'RoleBinding'],
} as const;
type Kind = (typeof kinds)[keyof typeof kinds][number];

interface Resources {
  readonly resources: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
  }[];
}

/** Requests are an administrator's, with a deadline, and throw KubeError. */
export class Cluster {
  /** Files of this cluster, removed when it stops. */
  readonly directory: string;
  readonly logs: string;
  readonly server: string;
  readonly identities: Identities;
  readonly kubeconfig: string;
  readonly client: KubeClient;
  readonly #plane: ControlPlane;
  readonly #closers: (() => Promise<void>)[] = [];

  constructor(directory: string, plane: ControlPlane, kubeconfig: string, client: KubeClient) {
    this.directory = directory;
    this.logs = join(directory, 'logs');
    this.server = plane.server;
    this.identities = plane.identities;
    this.kubeconfig = kubeconfig;
    this.client = client;
    this.#plane = plane;
  }

  pids(): ReadonlyMap<string, number> {
    return new Map([...this.#plane.parts].map(([name, { pid }]) => [name, pid]));
  }

  async stopApiServer(): Promise<void> {
    await this.#plane.parts.get('kube-apiserver')?.stop();
  }

  async startApiServer(): Promise<void> {
    await this.#plane.startApiServer();
  }

  get<T = KubeObject>(path: string, query: Query = {}): Promise<T> {
    return this.client.get(path, { signal: patience(), query });
  }

  async list<T = KubeObject>(path: string, query: Query = {}): Promise<readonly T[]> {
    return (await this.get<{ readonly items: readonly T[] }>(path, query)).items;
  }

  post<T = KubeObject>(path: string, object: object, query: Query = {}): Promise<T> {
    return this.client.create(path, object, { signal: patience(), query });
  }

  /** Creates an object of any kind. Default namespace: `default`. The rights of a binding are in force then. */
  async create<T extends KubeObject = KubeObject>(object: object): Promise<T> {
    const created = await this.post<T>(await this.pathOf(object), object);
    if (isBinding(object)) await untilGranted(this.client, object);
    return created;
  }

  /** Creates an object from its parts. @param name `name`, or `namespace/name` @param parts such as `spec` */
  make<T extends KubeObject = KubeObject>(
    kind: Kind,
    name: string,
    { metadata, ...parts }: KubeObject & Readonly<Record<string, unknown>> = {},
  ): Promise<T> {
    const [apiVersion] =
      Object.entries(kinds).find(([, names]) => (names as readonly Kind[]).includes(kind)) ?? [];
    const [last = '', namespace] = name.split('/').reverse();
    const named = { name: last, ...(namespace !== undefined && { namespace }), ...metadata };
    return this.create({ apiVersion, kind, metadata: named, ...parts });
  }

  patch<T = KubeObject>(path: string, patch: Patch, query: Query = {}): Promise<T> {
    return this.client.patch(path, patch, { signal: patience(), query });
  }

  merge<T = KubeObject>(path: string, body: object): Promise<T> {
    return this.patch(path, { type: 'merge', body });
  }

  delete(path: string, query: Query = {}): Promise<void> {
    return this.client.delete(path, { signal: patience(), query });
  }

  /** Applies objects. The rights of bindings are in force then. */
  async applyYaml(text: string): Promise<void> {
    const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject | null);
    for (const body of objects) {
      if (body === null) continue;
      const path = `${await this.pathOf(body)}/${body.metadata?.name ?? ''}`;
      await this.patch(path, { type: 'apply', body, fieldManager: 'e2e' });
    }
    for (const body of objects) if (body && isBinding(body)) await untilGranted(this.client, body);
  }

  /**
   * The collection of an object, by discovery. Custom resource definitions come and go, so nothing is cached.
   * @throws Error if the API server does not have its kind
   */
  async pathOf(object: KubeObject): Promise<string> {
    const { apiVersion = '', kind = '', metadata } = object;
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { resources } = await this.get<Resources>(base);
    const resource = resources.find((each) => each.kind === kind && !each.name.includes('/'));
    if (resource === undefined) throw new Error(`the API server has no ${kind} in ${apiVersion}`);
    if (!resource.namespaced) return `${base}/${resource.name}`;
    return `${base}/namespaces/${metadata?.namespace ?? 'default'}/${resource.name}`;
  }

  async createNamespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.post('/api/v1/namespaces', { metadata: { name, labels } });
    await this.waitForContents(name);
  }

  /**
   * Waits for what each namespace contains. Pods can be created only after the default service account,
   * and a listing of the cluster is complete only with the authorities.
   */
  async waitForContents(namespace: string): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}`;
    if (this.#plane.parts.has('kube-controller-manager')) {
      for (const each of ['serviceaccounts/default', 'configmaps/kube-root-ca.crt'])
        await waitFor(this.client, `${path}/${each}`, (found) => found !== undefined);
      return;
    }
    // The API server makes the namespace `default`, but no controller runs to make its accounts.
    await waitFor(this.client, path, (found) => found !== undefined);
    await this.post(`${path}/serviceaccounts`, { metadata: { name: 'default' } });
  }

  async createNodes(wanted: readonly FakeNode[]): Promise<void> {
    for (const node of wanted) await this.post('/api/v1/nodes', nodeToCreate(node));
    const watched = await watch<NodeObject>(this.client, '/api/v1/nodes');
    const areReady = (found: ReadonlyMap<string, NodeObject>): boolean =>
      wanted.every(({ name }) => takesPods(found.get(name)));
    await watched.until('nodes are ready', areReady).finally(() => watched.close());
  }

  /** `waitFor` of `watch.ts`. */
  waitFor<T extends KubeObject>(
    path: string,
    isIt: (object: T | undefined) => boolean,
    ms?: number,
  ): Promise<T | undefined> {
    return waitFor<T>(this.client, path, isIt, ms);
  }

  /** Watches a collection such as `/api/v1/pods`. @param t the test with which it ends */
  watch<T extends KubeObject>(path: string, t?: Test): Promise<Watched<T>> {
    return watch<T>(this.client, path, {}, t);
  }

  /** Registers a function that is called before the cluster stops, in reverse order. */
  onStop(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  async stop(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
    this.client.close();
    await this.#plane.stop();
    await remove(this.directory);
  }
}

async function remove(directory: string): Promise<void> {
  if (process.env['ARCHWRIGHT_E2E_KEEP'] === undefined) await rm(directory, { recursive: true });
  else say(`kept: ${directory}`);
}

/** Starts a cluster for the test `t`. @throws Error with the end of a log if it does not become ready */
export async function startCluster({ nodes = {}, ...more }: ClusterOptions = {}, t?: Test): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-'));
  const plane = await startControlPlane({ directory, ...more }).catch(async (error: unknown) => {
    await remove(directory);
    throw error;
  });
  const admin = { cn: 'admin', group: 'system:masters' };
  const kubeconfig = await plane.identities.kubeconfig(admin, plane.server);
  const cluster = new Cluster(directory, plane, kubeconfig, await clientOf(kubeconfig));
  try {
    for (const each of plane.parts.has('kube-controller-manager') ? systemNamespaces : ['default'])
      await cluster.waitForContents(each);
    await cluster.createNodes(isList(nodes) ? nodes : plainNodes(nodes));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  t?.teardown(() => cluster.stop());
  return cluster;
}

export async function clientOf(kubeconfig: string, userAgent = 'archwright-e2e'): Promise<KubeClient> {
  const access = await kubeconfigAccess({ path: kubeconfig });
  if (access === undefined) throw new TypeError('the kubeconfig that was just written gives no access');
  return createKubeClient({ access, userAgent });
}

function isList(nodes: NonNullable<ClusterOptions['nodes']>): nodes is readonly FakeNode[] {
  return Array.isArray(nodes);
}
