/** Pods created at a steady rate, each followed from its create request until it is bound to a node. */
import { setTimeout as pause } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { Pod } from '../../src/kube/api/objects.ts';
import { watch, type Watched } from '../../test/e2e/cluster/control-plane/watch.ts';
import { concurrently } from '../../src/async/concurrently.ts';

export interface BurstOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly pods: number;
  /** Requests per second; they do not wait for each other. */
  readonly rate: number;
  /** References; each pod has one or two of them. */
  readonly images: readonly string[];
}

/** One for each pod, milliseconds, sorted. */
export interface BurstTimes {
  /** From the pod's arrival in a watch to the arrival of its node there. */
  readonly fromCreation: readonly number[];
  /** From sending the request to the arrival of its node in the watch. */
  readonly fromRequest: readonly number[];
  /** Pods that arrived with a gate. */
  readonly gated: number;
}

const boundMs = 180_000;
const requestMs = 60_000;

/** Creates them and waits until all are bound. */
export async function createBurst(options: BurstOptions): Promise<BurstTimes> {
  const { client, namespace, pods, rate } = options;
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const watched = await watch<Pod>(client, path);
  const sent = new Map<string, number>();
  const seen = new Map<string, number>();
  const bound = new Map<string, number>();
  let gated = 0;
  watched.onChange(({ object, at }) => {
    const name = object.metadata?.name ?? '';
    if (!seen.has(name)) {
      seen.set(name, at);
      if ((object.spec.schedulingGates ?? []).length > 0) gated += 1;
    }
    if (object.spec.nodeName !== undefined && !bound.has(name)) bound.set(name, at);
  });
  try {
    const requests: Promise<unknown>[] = [];
    const start = performance.now();
    for (let index = 0; index < pods; index += 1) {
      const wait = start + (index * 1000) / rate - performance.now();
      if (wait > 0) await pause(wait);
      const pod = podOf(options, index);
      sent.set(pod.metadata.name, performance.now());
      requests.push(client.create(path, pod, { signal: AbortSignal.timeout(requestMs) }));
    }
    await Promise.all(requests);
    await watched.until(`${pods} pods are bound`, () => bound.size === pods, boundMs);
  } finally {
    watched.close();
  }
  const since = (from: ReadonlyMap<string, number>): number[] =>
    [...bound].map(([name, at]) => at - (from.get(name) ?? at)).sort((a, b) => a - b);
  return { fromCreation: since(seen), fromRequest: since(sent), gated };
}

/** Deletes all pods of a namespace, and waits until they are gone. */
export async function deletePods(client: KubeClient, namespace: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const watched: Watched<Pod> = await watch<Pod>(client, path);
  try {
    const names = [...watched.objects.values()].map((pod) => pod.metadata?.name ?? '');
    await concurrently(names, 8, (name) =>
      client.delete(`${path}/${name}`, {
        signal: AbortSignal.timeout(requestMs),
        query: { gracePeriodSeconds: 0 },
      }),
    );
    await watched.until('pods are gone', (objects) => objects.size === 0, boundMs);
  } finally {
    watched.close();
  }
}

/** The size of a pod as a Deployment makes it, without its name and owner. */
export function podOf(
  { images }: Pick<BurstOptions, 'images'>,
  index: number,
): { readonly metadata: { readonly name: string }; readonly spec: object } {
  const image = (offset: number): string => images[(index + offset) % images.length] ?? '';
  const container = (name: string, offset: number): object => ({
    name,
    image: image(offset),
    env: [
      { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      { name: 'LOG_LEVEL', value: 'info' },
    ],
    ports: [{ name: `http-${offset}`, containerPort: 8080 + offset }],
    resources: { requests: { cpu: '10m', memory: '16Mi' } },
  });
  const containers = [container('app', 0), ...(index % 4 === 0 ? [container('sidecar', 7)] : [])];
  return {
    metadata: { name: `burst-${index}` },
    spec: { terminationGracePeriodSeconds: 0, containers },
  };
}
