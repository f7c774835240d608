/** Pods of users, and the nodes that they run on. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { type Cluster } from '../cluster/harness.ts';
import { watch } from '../cluster/watch.ts';
import { isGated, podPath, runningPod as runs, type PodNow } from '../cluster/pods.ts';
import { nodeName } from './node.ts';

export interface WantedPod {
  readonly name: string;
  readonly images: readonly string[];
  readonly preferred?: string;
  readonly pullSecret?: string;
  readonly pullPolicy?: string;
  /** Its `nodeName`, which bypasses the scheduler. */
  readonly node?: string;
}

/** Pulls of a megabyte from loopback; a loaded machine gets more. */
const patienceMs = 90_000;

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

export const isPlaced = (pod: Pod | undefined): boolean =>
  pod?.metadata?.annotations?.[keys.decision] !== undefined;

export const runningPod = (cluster: Cluster, name: string): Promise<PodNow> =>
  runs(cluster, name, 'default', patienceMs);

/** The architecture of the node that a pod runs on. On the real node it must have a container. */
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
  const { metadata } = await cluster.get(`/api/v1/nodes/${node}`);
  return metadata?.labels?.['kubernetes.io/arch'] ?? '';
}

export async function deletePods(cluster: Cluster, names: readonly string[]): Promise<void> {
  for (const name of names) await cluster.delete(podPath(name));
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

/** What became of the pods of a stream. */
export interface Streamed {
  readonly made: number;
  readonly gated: number;
  readonly placed: number;
  readonly slowestMs: number;
}

const everyMs = 200;

/**
 * Makes pods one after the other while something happens, and waits until all have a node.
 * @throws Error if one is refused, or stays without a node
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
