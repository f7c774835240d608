/**
 * Custom resources: their status says what became of them, `ClusterPodPlacementConfig/cluster` waits for gates when it is
 * deleted, and the level of the leader's log follows it. One key of work for the cluster's object and one for each namespace, whose
 * objects can be in conflict with each other.
 *
 * A status is written by server-side apply, only where it would change. Deleting the cluster's object closes no gate:
 * webhooks stop gating when they see it being deleted (`policies.ts`), the gates that are there are opened as always, and
 * then the finalizer goes. Without a controller it stays; `archwright clean` takes it off.
 */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { keys } from '../../names/keys.ts';
import {
  clusterConfigKind,
  clusterConfigsPath,
  podConfigsPath,
  podConfigKind,
  resourceVersion,
} from '../../policy/resources/placement.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { fieldManager } from '../own-objects.ts';
import { createReconciler, type ReconcileResult } from '../reconcile/reconciler.ts';
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

/** Makes the feature. */
export function customResources(): Feature {
  return async (leading) => {
    const { signal, caches, configuration, log } = leading;
    let told = configuration();

    async function reconcile(key: string): Promise<ReconcileResult> {
      if (key === clusterKey) return await reconcileCluster();
      if (key === configurationKey) return lookAtConfiguration();
      return await reconcileNamespace(key.slice(key.indexOf('/') + 1));
    }

    async function reconcileCluster(): Promise<ReconcileResult> {
      log.level = configuration().logLevel;
      const pauses: number[] = [];
      for (const object of caches.clusterConfigs.values()) {
        const again = await keepClusterConfig(leading, object);
        if (again !== undefined) pauses.push(again);
      }
      return pauses.length === 0 ? undefined : { requeueAfterMs: Math.min(...pauses) };
    }

    async function reconcileNamespace(namespace: string): Promise<ReconcileResult> {
      const objects = [...caches.podConfigs.values()].filter(
        ({ metadata }) => metadata?.namespace === namespace,
      );
      const turn = createYielder(signal);
      const findings = await podFindings(objects, configuration().schedulableArchitectures, { turn });
      for (const object of objects) {
        await turn();
        const { name = '' } = object.metadata ?? {};
        const path = podConfigsPath(namespace, name);
        await writeStatus(leading, { object, kind: podConfigKind, path, findings: findings.get(name) ?? [] });
      }
      return undefined;
    }

    function lookAtConfiguration(): ReconcileResult {
      if (configuration() !== told) {
        told = configuration();
        for (const key of allKeys()) reconciler.add(key);
      }
      return { requeueAfterMs: lookAtConfigurationMs };
    }

    function allKeys(): readonly string[] {
      const namespaces = [...caches.podConfigs.values()].map(({ metadata }) => metadata?.namespace ?? '');
      return [clusterKey, ...namespaces.map(namespaceKey)];
    }

    const reconciler = createReconciler({ leading, reconcile, workers: 2 });
    caches.clusterConfigs.onEach(() => reconciler.add(clusterKey));
    caches.podConfigs.onEach(({ namespace }) => reconciler.add(namespaceKey(namespace)));
    await caches.ready(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    await reconciler.run([...allKeys(), configurationKey]);
  };
}

function namespaceKey(namespace: string): string {
  return `${podConfigKind}/${namespace}`;
}

/** @returns after how many milliseconds to look again, where that is needed */
async function keepClusterConfig(leading: Leading, object: Resource): Promise<number | undefined> {
  const { client, signal, serverNow, step, log } = leading;
  const { metadata = {} } = object;
  const path = clusterConfigsPath(metadata.name ?? '');
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
