/** archwright's pods in the cluster: waiting until they are ready, and killing them. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { createScrape } from '../../../cmd/installation/scrape.ts';
import { probe, settled } from '../../../cmd/probe.ts';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { type Cluster } from '../cluster/harness.ts';
import { namespace } from './release.ts';

interface Workload extends KubeObject {
  readonly spec: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
  };
}

export const partNames = ['webhook', 'controller', 'agent'] as const;
export type PartName = (typeof partNames)[number];

const patienceMs = 120_000;

/** Waits until both Deployments are complete, and the agent of the real node is ready. */
export async function untilReady(cluster: Cluster, agents = 1): Promise<void> {
  for (const part of ['webhook', 'controller']) {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/archwright-${part}`;
    await cluster.waitFor<Workload>(path, (now) => isComplete(now), patienceMs);
  }
  await cluster.waitFor<KubeObject & { readonly status?: { readonly numberReady?: number } }>(
    `/apis/apps/v1/namespaces/${namespace}/daemonsets/archwright-agent`,
    (now) => now?.status?.numberReady === agents,
    patienceMs,
  );
}

function isComplete(workload: Workload | undefined): boolean {
  if (workload?.status === undefined) return false;
  const { spec, status, metadata } = workload;
  return (
    status.observedGeneration === metadata?.generation &&
    [status.replicas, status.updatedReplicas, status.readyReplicas].every((count) => count === spec.replicas)
  );
}

/** Kills the processes of a component, as the kernel's OOM killer does. */
export function crash(part: PartName): number {
  const pids = globSync('/proc/[0-9]*/cmdline').flatMap((path) => {
    let words: readonly string[];
    try {
      words = readFileSync(path, 'utf8').split('\0');
    } catch {
      return [];
    }
    return words[1] === '/opt/archwright/archwright.mjs' && words[2] === part
      ? [Number(path.split('/')[2])]
      : [];
  });
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  assert(pids.length > 0, `there is a process of the ${part}`);
  return pids.length;
}

/** Deletes all pods of a component at once, without grace period. */
export async function deletePart(cluster: Cluster, part: PartName): Promise<void> {
  const { items } = await cluster.get<{ readonly items: readonly Pod[] }>(
    `/api/v1/namespaces/${namespace}/pods`,
    { labelSelector: `app.kubernetes.io/component=${part}` },
  );
  assert(items.length > 0, `there are pods of the ${part}`);
  for (const { metadata } of items) {
    await cluster.delete(`/api/v1/namespaces/${namespace}/pods/${metadata?.name ?? ''}`, {
      gracePeriodSeconds: 0,
    });
  }
}

export const webhookConfiguration =
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';

/** Waits until the API server calls the webhooks. It learns of their configuration by a watch. */
export async function untilWebhooksInForce(cluster: Cluster): Promise<void> {
  await cluster.waitFor<KubeObject & { readonly webhooks?: readonly unknown[] }>(
    webhookConfiguration,
    (now) => (now?.webhooks ?? []).length > 0,
    patienceMs,
  );
  const { code, what } = await probe({
    client: cluster.client,
    namespace: 'default',
    image: 'registry.invalid/probe:1',
    deadline: systemClock.monotonic() + patienceMs,
    clock: systemClock,
    signal: AbortSignal.timeout(patienceMs),
    progress: () => undefined,
  });
  assert(code === 0, what);
}

/** Waits until agents answer each webhook, as the chart's startup check does: certificates come later. */
export async function untilAgentsAnswer({ client }: Cluster): Promise<void> {
  const { problems } = await settled({
    client,
    namespace,
    scrape: createScrape({ client, podNamespace: undefined }),
    deadline: systemClock.monotonic() + patienceMs,
    clock: systemClock,
    signal: AbortSignal.timeout(patienceMs),
    progress: () => undefined,
  });
  assert.deepEqual(problems, []);
}
