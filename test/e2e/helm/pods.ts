/** Pods made as people make them, and where they end up. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { patience, type Cluster } from '../cluster/harness.ts';
import { waitFor, watch } from '../cluster/watch.ts';
import { nodeName } from './node.ts';

export interface WantedPod {
  readonly name: string;
  readonly images: readonly string[];
  readonly preferred?: string;
  readonly pullSecret?: string;
  readonly pullPolicy?: string;
  /** Given by whoever makes it, past the scheduler. */
  readonly node?: string;
}

export type PodNow = Pod & {
  readonly status?: {
    readonly phase?: string;
    readonly containerStatuses?: readonly { readonly containerID?: string }[];
  };
};

const gate = 'arch.example/scheduling-gate';
const decision = 'arch.example/decision';
/** Pulls of a megabyte from loopback; a loaded machine gets more. */
const patienceMs = 90_000;

export const pathOfPod = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;

export function podOf({ name, images, preferred, pullSecret, pullPolicy, node }: WantedPod): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(preferred !== undefined && { labels: { 'arch.example/preferred': preferred } }) },
    spec: {
      terminationGracePeriodSeconds: 0,
      ...(node !== undefined && { nodeName: node }),
      containers: images.map((image, index) => ({
        name: `c${index}`,
        image,
        ...(pullPolicy !== undefined && { imagePullPolicy: pullPolicy }),
      })),
      ...(pullSecret !== undefined && { imagePullSecrets: [{ name: pullSecret }] }),
    },
  };
}

export const isGated = (pod: Pod | undefined): boolean =>
  (pod?.spec.schedulingGates ?? []).some(({ name }) => name === gate);
export const isPlaced = (pod: Pod | undefined): boolean =>
  pod?.metadata?.annotations?.[decision] !== undefined;

export async function runningPod(cluster: Cluster, name: string): Promise<PodNow> {
  const pod = await waitFor<PodNow>(
    cluster.client,
    pathOfPod(name),
    (now) => now?.status?.phase === 'Running',
    patienceMs,
  );
  assert(pod !== undefined);
  return pod;
}

/** The architecture of the node that a pod runs on; on the real node it has a container. */
export async function whereRuns(cluster: Cluster, name: string): Promise<string> {
  const pod = await runningPod(cluster, name);
  const node = pod.spec.nodeName ?? '';
  if (node === nodeName) {
    assert.match(
      pod.status?.containerStatuses?.[0]?.containerID ?? '',
      /^containerd:\/\//,
      `${name} has a container`,
    );
  }
  const { metadata } = await cluster.client.get<KubeObject>(`/api/v1/nodes/${node}`, { signal: patience() });
  return metadata?.labels?.['kubernetes.io/arch'] ?? '';
}

export async function deletePods(cluster: Cluster, names: readonly string[]): Promise<void> {
  for (const name of names) await cluster.client.delete(pathOfPod(name), { signal: patience() });
  const watched = await watch<Pod>(cluster.client, '/api/v1/namespaces/default/pods');
  try {
    await watched.until(
      'pods are gone',
      (found) => names.every((name) => !found.has(`default/${name}`)),
      patienceMs,
    );
  } finally {
    watched.close();
  }
}

/** Where the stream of pods was interrupted by nothing. */
export interface Streamed {
  readonly made: number;
  readonly gated: number;
  readonly placed: number;
  readonly slowestMs: number;
}

const everyMs = 200;

/**
 * Makes pods one after the other while something happens, and sees them all onto nodes.
 * @throws where one is refused, or stays without a node
 */
export async function whilePodsAreMade(
  cluster: Cluster,
  wanted: readonly Omit<WantedPod, 'name'>[],
  happens: () => Promise<unknown>,
): Promise<Streamed> {
  const over = new AbortController();
  let slowestMs = 0;
  let [gated, placed] = [0, 0];
  const names: string[] = [];
  const stream = (async () => {
    do {
      const name = `stream-${names.length}`;
      names.push(name);
      const started = performance.now();
      const { images, ...more } = wanted[names.length % wanted.length] ?? { images: [] };
      const pod = await cluster.create<Pod>(podOf({ name, images, ...more }));
      slowestMs = Math.max(slowestMs, performance.now() - started);
      if (isGated(pod)) gated += 1;
      else if (isPlaced(pod)) placed += 1;
      await pause(everyMs);
    } while (!over.signal.aborted);
  })();
  await Promise.all([stream, happens().finally(() => over.abort())]);
  const watched = await watch<Pod>(cluster.client, '/api/v1/namespaces/default/pods');
  try {
    await watched.until(
      'all pods of the stream have a node',
      (found) => names.every((name) => found.get(`default/${name}`)?.spec.nodeName !== undefined),
      patienceMs,
    );
  } catch (error) {
    const stuck = names.filter((name) => watched.objects.get(`default/${name}`)?.spec.nodeName === undefined);
    throw new Error(
      `without a node: ${JSON.stringify(stuck.map((name) => watched.objects.get(`default/${name}`)))}`,
      { cause: error },
    );
  } finally {
    watched.close();
  }
  await deletePods(cluster, names);
  return { made: names.length, gated, placed, slowestMs: Math.round(slowestMs) };
}
