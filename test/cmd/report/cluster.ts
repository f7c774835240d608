/** A cluster and a registry for tests of `archwright report`. */
import type { Test } from 'tap';
import type { KubeStore } from '../../support/kube-store.ts';
import { image, multiArch } from '../../support/registry/content.ts';
import type { TestRegistry } from '../../support/registry/server.ts';
import { run, type Result, type RunOptions } from '../run.ts';
import { dockerConfig, pullSecret, registry, storeWithConfig } from '../world.ts';

/** Two nodes: `a1` is amd64, `g1` is arm64. */
export async function startCluster(t: Test) {
  const { store, config } = await storeWithConfig(t);
  for (const [name, architecture] of Object.entries({ a1: 'amd64', g1: 'arm64' }))
    store.put(`/api/v1/nodes/${name}`, { status: { nodeInfo: { architecture } } });
  const reportWith = (options: RunOptions, ...args: readonly string[]): Promise<Result> =>
    run(['report', '--kubeconfig', config, ...args], options);
  const report = (...args: readonly string[]): Promise<Result> => reportWith({}, ...args);
  return { store, report, reportWith };
}

/** Images `both:1` for amd64 and arm64, and `old:1` for amd64. */
export async function shop(t: Test): Promise<TestRegistry> {
  const open = await registry(t);
  open.push('both', '1', multiArch(['linux/amd64', 'linux/arm64']));
  open.push('old', '1', image('linux/amd64'));
  return open;
}

export type Owner = readonly [apiVersion: string, kind: string, name: string];

interface Made {
  readonly owner?: Owner;
  /** Default: `a1`. */
  readonly node?: string;
  readonly phase?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Of each container. */
  readonly requests?: object;
  readonly spec?: object;
}

export const uidOf = (kind: string, name: string): string => `uid-of-${kind}-${name}`;

const half = { cpu: '500m', memory: '1Gi' };

/** @param path namespace and name */
export function putPod(store: KubeStore, path: string, images: readonly string[], made: Made = {}): void {
  const { owner, node = 'a1', phase = 'Running', annotations = {}, requests = half, spec = {} } = made;
  const [namespace = '', name = ''] = path.split('/');
  const [apiVersion = '', kind = '', ownerName = ''] = owner ?? [];
  const reference = { apiVersion, kind, name: ownerName, uid: uidOf(kind, ownerName), controller: true };
  store.put(`/api/v1/namespaces/${namespace}/pods/${name}`, {
    metadata: { annotations, ...(owner && { ownerReferences: [reference] }) },
    spec: {
      ...(node && { nodeName: node }),
      containers: images.map((each, index) => ({ name: `c${index}`, image: each, resources: { requests } })),
      ...spec,
    },
    status: { phase },
  });
}

/** An object that another one controls. */
export function putOwned(
  store: KubeStore,
  path: string,
  kind: string,
  owner: readonly [string, string],
): void {
  const uid = uidOf(kind, path.slice(path.lastIndexOf('/') + 1));
  const [ownerKind, name] = owner;
  const reference = { apiVersion: 'x/v1', kind: ownerKind, name, uid: 'x', controller: true };
  store.put(path, { metadata: { uid, ownerReferences: [reference] }, spec: {} });
}

/** The pull secret `regcred` of a user with the password `password-of-USER`. */
export function putPullSecret(store: KubeStore, namespace: string, host: string, user: string): void {
  const secret = pullSecret(dockerConfig(host, user, `password-of-${user}`), { name: 'regcred', namespace });
  store.put(`/api/v1/namespaces/${namespace}/secrets/regcred`, JSON.parse(secret) as object);
}
