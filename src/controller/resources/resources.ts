/**
 * Custom resources: their status says what became of them, `ClusterPodPlacementConfig/cluster` waits for gates when it is
 * deleted, and the level of the leader's log follows it. One key of work for the cluster's object and one for each namespace, whose
 * objects can be in conflict with each other.
 *
 * A status is written by server-side apply, only where it would change. Deleting the cluster's object closes no gate:
 * webhooks stop gating when they see it being deleted (`policies.ts`), the gates that are there are opened as always, and
 * then the finalizer goes. Without a controller it stays; `archwright clean` takes it off.
 */
import type { Clock } from '../../async/clock.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { createWorkQueue } from '../../kube/queue.ts';
import { keys } from '../../names/keys.ts';
import {
  clusterConfigKind,
  clusterConfigsPath,
  podConfigKind,
  resourceVersion,
} from '../../policy/resources/placement.ts';
import type { Feature, Leading } from '../controller.ts';
import { fieldManager } from '../own-objects.ts';
import { statusFor, type Finding, type ResourceStatus } from './conditions.ts';
import { addFinalizer, hasFinalizer, removeFinalizer } from './finalizer.ts';
import { clusterFindings, podFindings } from './validation.ts';
import { createYielder } from '../../async/yield-to-event-loop.ts';

interface Resource extends KubeObject {
  readonly status?: ResourceStatus;
}

const clusterKey = 'cluster';
const configurationKey = 'configuration';

/** The configuration has no listener here; what depends on it is only told, so it may be told a little later. */
const lookAtConfigurationMs = 10_000;

/** While thousands of gates open, their number is written once in so long. */
const countGatesMs = 1000;

/** A watch brings a deletion to the webhooks within milliseconds; what they admitted until then is in our cache by now. */
const webhooksHearMs = 3000;

export interface ResourcesOptions {
  /** Runs something later; injected by tests. */
  readonly startTimer?: Clock['timer'];
}

/** Makes the feature. */
export function customResources(options: ResourcesOptions = {}): Feature {
  return async (leading) => {
    const { signal, caches, configuration, log } = leading;
    let told = configuration();

    async function work(key: string): Promise<void> {
      if (key === clusterKey) await workOnCluster();
      else if (key === configurationKey) lookAtConfiguration();
      else await workOnNamespace(key.slice(key.indexOf('/') + 1));
    }

    async function workOnCluster(): Promise<void> {
      log.level = configuration().logLevel;
      for (const object of caches.clusterConfigs.values()) {
        const again = await keepClusterConfig(leading, object);
        if (again !== undefined) queue.add(clusterKey, again);
      }
    }

    async function workOnNamespace(namespace: string): Promise<void> {
      const objects = [...caches.podConfigs.values()].filter(
        ({ metadata }) => metadata?.namespace === namespace,
      );
      const turn = createYielder(signal);
      const findings = await podFindings(objects, configuration().schedulableArchitectures, { turn });
      for (const object of objects) {
        await turn();
        const { name = '' } = object.metadata ?? {};
        const path = `/apis/${resourceVersion}/namespaces/${encodeURIComponent(namespace)}/podplacementconfigs/${encodeURIComponent(name)}`;
        await writeStatus(leading, { object, kind: podConfigKind, path, findings: findings.get(name) ?? [] });
      }
    }

    function lookAtConfiguration(): void {
      if (configuration() !== told) {
        told = configuration();
        addAll();
      }
      queue.add(configurationKey, lookAtConfigurationMs);
    }

    function addAll(): void {
      queue.add(clusterKey);
      for (const { metadata } of caches.podConfigs.values())
        queue.add(namespaceKey(metadata?.namespace ?? ''));
    }

    const queue = createWorkQueue({
      work,
      workers: 2,
      log,
      ...(options.startTimer && { startTimer: options.startTimer }),
    });
    caches.clusterConfigs.onEach(() => queue.add(clusterKey));
    caches.podConfigs.onEach(({ namespace }) => queue.add(namespaceKey(namespace)));
    try {
      await caches.ready(signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
      addAll();
      queue.add(configurationKey, lookAtConfigurationMs);
      await ended(signal);
    } finally {
      await queue.stop();
    }
  };
}

function namespaceKey(namespace: string): string {
  return `${podConfigKind}/${namespace}`;
}

/** @returns after how many milliseconds to look again, where that is needed */
async function keepClusterConfig(leading: Leading, object: Resource): Promise<number | undefined> {
  const { client, signal, serverNow, step, log } = leading;
  const { metadata = {} } = object;
  const path = `${clusterConfigsPath}/${encodeURIComponent(metadata.name ?? '')}`;
  const { deletionTimestamp } = metadata;
  let gated: number | undefined;
  if (deletionTimestamp !== undefined) {
    if (!hasFinalizer(metadata)) return undefined;
    // What a watch does not show, because it has only begun or is interrupted, is not known to be gone.
    const { synced, watching } = leading.caches.waitingPods.health();
    if (!synced || !watching) return countGatesMs;
    gated = countGated(leading);
    const sinceMs = serverNow() - Date.parse(deletionTimestamp);
    if (gated === 0 && sinceMs < webhooksHearMs) return Math.max(1, webhooksHearMs - sinceMs);
    if (gated === 0) {
      await step('resources/before-release');
      await unlessGone(client.patch(path, removeFinalizer(metadata), { signal }));
      log.info({ name: metadata.name }, 'no pod waits behind the gate any more; the object may go');
      return undefined;
    }
  } else if (!hasFinalizer(metadata)) {
    await unlessGone(client.patch(path, addFinalizer(metadata), { signal }));
    await step('resources/finalizer-added');
    // The watch brings what came of it, and the status is written then.
    return undefined;
  }
  const schedulable = leading.configuration().schedulableArchitectures;
  const findings = clusterFindings(object, schedulable, gated);
  await writeStatus(leading, { object, kind: clusterConfigKind, path, findings, gatedPods: gated });
  return gated === undefined ? undefined : countGatesMs;
}

/** A pod that is being deleted keeps its gate; what it waits for, a finalizer of others, is no matter of ours. */
function countGated({ caches }: Leading): number {
  let count = 0;
  for (const { pod } of caches.waitingPods.values()) {
    if (pod.metadata?.deletionTimestamp !== undefined) continue;
    if (pod.spec.schedulingGates?.some(({ name }) => name === keys.gate)) count++;
  }
  return count;
}

async function writeStatus(
  { client, signal, serverNow, step }: Leading,
  about: {
    readonly object: Resource;
    readonly kind: string;
    readonly path: string;
    readonly findings: readonly Finding[];
    readonly gatedPods?: number | undefined;
  },
): Promise<void> {
  const { object, kind, path, findings, gatedPods } = about;
  const { name, namespace, uid, generation } = object.metadata ?? {};
  const status = statusFor(findings, { generation, gatedPods }, object.status, serverNow());
  if (status === undefined) return;
  // With the uid, an object that was made anew under the same name is not told what is true of the one before.
  const metadata = { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) };
  const body = { apiVersion: resourceVersion, kind, metadata, status };
  const patch = { type: 'apply', body, fieldManager, force: true } as const;
  await unlessGone(client.patch(`${path}/status`, patch, { signal }));
  await step('resources/status-written');
}

async function unlessGone(writing: Promise<unknown>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
