/** Pods of users, and the nodes that they run on. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { uncheckedRecord } from '../../../src/placement/record/read.ts';
import { type Cluster } from '../cluster/harness.ts';
import { isGated, podPath, runningPod as runs, type PodNow } from '../cluster/control-plane/pods.ts';
import { nodeName } from './node.ts';
import { step, reportLine } from './report.ts';
import type { World } from './world.ts';

export interface WantedPod {
  readonly name: string;
  readonly images: readonly string[];
  readonly preferred?: string;
  readonly pullSecret?: string;
  readonly pullPolicy?: string;
  /** Its `nodeName`, which bypasses the scheduler. */
  readonly node?: string;
}

/** Pulls of a megabyte from loopback; a loaded machine needs more. */
const patienceMs = 90_000;
const podsPath = '/api/v1/namespaces/default/pods';

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

/** Decided, with known images or behind the gate: not while no agent is known. */
export function isPlaced(pod: Pod | undefined): boolean {
  const outcome = pod && uncheckedRecord(pod).outcome;
  return outcome !== undefined && outcome !== 'allowed-unknown';
}

export const runningPod = (cluster: Cluster, name: string): Promise<PodNow> =>
  runs(cluster, name, 'default', patienceMs);

/** The architecture of the node that a pod runs on. On the real node it must have a container. */
export async function nodeArchitectureOf(cluster: Cluster, name: string): Promise<string> {
  const pod = await runningPod(cluster, name);
  const node = pod.spec.nodeName ?? '';
  const id = pod.status?.containerStatuses?.[0]?.containerID ?? '';
  if (node === nodeName) assert.match(id, /^containerd:\/\//, `${name} has a container`);
  const { metadata } = await cluster.get(`/api/v1/nodes/${node}`);
  return metadata?.labels?.['kubernetes.io/arch'] ?? '';
}

export async function deletePods(cluster: Cluster, names: readonly string[]): Promise<void> {
  for (const name of names) await cluster.delete(podPath(name));
  const watched = await cluster.watch<Pod>(podsPath);
  const areGone = (found: ReadonlyMap<string, Pod>): boolean =>
    names.every((name) => !found.has(`default/${name}`));
  await watched.until('pods are gone', areGone, patienceMs).finally(() => watched.close());
}

const everyMs = 200;

/** A step with a stream of new pods. @throws Error if one of them is refused or gets no node */
export async function whileCreatingPods(
  { cluster, image }: World,
  name: string,
  happens: () => Promise<unknown>,
): Promise<void> {
  const wanted = [
    { images: [image('public/multi')], preferred: 'arm64' },
    { images: [image('plugin/multi')], preferred: 'arm64', pullPolicy: 'Always' },
  ];
  const over = new AbortController();
  let slowestMs = 0;
  let [gated, placed] = [0, 0];
  const names: string[] = [];
  const make = async (): Promise<void> => {
    do {
      const pod = `stream-${names.length}`;
      names.push(pod);
      const started = performance.now();
      const { images: own = [], ...more } = wanted[names.length % wanted.length] ?? {};
      const made = await cluster.create<Pod>(podOf({ name: pod, images: own, ...more }));
      slowestMs = Math.max(slowestMs, performance.now() - started);
      if (isGated(made)) gated += 1;
      else if (isPlaced(made)) placed += 1;
      await pause(everyMs);
    } while (!over.signal.aborted);
  };
  await step(`${name}: no pod is refused or stuck`, async () => {
    await Promise.all([make(), happens().finally(() => over.abort())]);
    const watched = await cluster.watch<Pod>(podsPath);
    const stuck = (): readonly (Pod | undefined)[] =>
      names.map((each) => watched.objects.get(`default/${each}`)).filter((pod) => !pod?.spec.nodeName);
    try {
      await watched.until('all pods of the stream have a node', () => stuck().length === 0, patienceMs);
    } catch (error) {
      throw new Error(`without a node: ${JSON.stringify(stuck())}`, { cause: error });
    } finally {
      watched.close();
    }
    await deletePods(cluster, names);
  });
  const slowest = `the slowest was made in ${Math.round(slowestMs)} ms`;
  reportLine({
    fact: `${name}: of ${names.length} pods ${placed} placed at once, ${gated} createGated, ${slowest}`,
  });
}
