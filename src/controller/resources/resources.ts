/**
 * Custom resources: their status says whether they are in force. A deleted
 * `ClusterPodPlacementConfig/cluster` stays until no pod is gated. The leader's log level follows it. Keys:
 * the cluster's object, and each namespace, because its objects can conflict.
 *
 * A status is written by server-side apply, and only if it changes. When the cluster's object is being
 * deleted, webhooks stop gating (`policies.ts`), existing gates are opened as always, and then the finalizer
 * is removed. Without a controller it stays, and `archwright clean` removes it.
 */
import { createYielder } from '../../async/yield-to-event-loop.ts';
import { ignoring } from '../../kube/api/errors.ts';
import { guardedPatch } from '../../kube/api/change.ts';
import type { Patch } from '../../kube/api/client.ts';
import type { KubeObject, ObjectMeta } from '../../kube/api/objects.ts';
import {
  clusterConfigKind,
  clusterConfigsPath,
  podConfigKind,
  podConfigsPath,
} from '../../policy/resources/placement.ts';
import { carriesGate } from '../caches/waiting-pods.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { applyStatus } from '../own-objects.ts';
import { createReconciler, type ReconcileResult } from '../reconcile/reconciler.ts';
import { statusFor, type Finding, type ResourceStatus } from './conditions.ts';
import { validateClusterConfig, validatePodConfigs } from './validation.ts';

interface Resource extends KubeObject {
  readonly status?: ResourceStatus;
}

/** On `ClusterPodPlacementConfig/cluster`: a deleted object stays until no pod waits behind our gate. */
export const gatesFinalizer = 'arch.example/gates';

const clusterKey = 'cluster';
const configurationKey = 'configuration';

/** The configuration is polled. It only affects the status, so a delay does no harm. */
const configurationIntervalMs = 10_000;

/** While thousands of gates open, their number is written at this rate. */
const countGatesMs = 1000;

/** Webhooks see the deletion within milliseconds. Our cache has the pods that they gated until then. */
const webhooksLagMs = 3000;

export const customResources: Feature = async (leading) => {
  const { signal, caches, configuration } = leading;
  const work = new ResourceReconciler(leading);
  let current = configuration();

  const allKeys = (): readonly string[] => [
    clusterKey,
    ...[...caches.podConfigs.values()].map(({ metadata }) => namespaceKey(metadata?.namespace ?? '')),
  ];
  function reconcileConfiguration(): ReconcileResult {
    if (configuration() !== current) {
      current = configuration();
      for (const key of allKeys()) reconciler.add(key);
    }
    return { requeueAfterMs: configurationIntervalMs };
  }

  const reconciler = createReconciler({
    leading,
    workers: 2,
    reconcile: async (key) => {
      if (key === configurationKey) return reconcileConfiguration();
      return await (key === clusterKey ? work.reconcileCluster() : work.reconcileNamespace(namespaceOf(key)));
    },
  });
  caches.clusterConfigs.onEach(() => reconciler.add(clusterKey));
  caches.podConfigs.onEach(({ namespace }) => reconciler.add(namespaceKey(namespace)));
  await caches.ready(signal).catch(() => undefined);
  await reconciler.run([...allKeys(), configurationKey]);
};

const namespaceKey = (namespace: string): string => `${podConfigKind}/${namespace}`;
const namespaceOf = (key: string): string => key.slice(key.indexOf('/') + 1);

class ResourceReconciler {
  readonly #leading: Leading;

  constructor(leading: Leading) {
    this.#leading = leading;
  }

  async reconcileCluster(): Promise<ReconcileResult> {
    const { log, configuration, caches } = this.#leading;
    log.level = configuration().logLevel;
    let requeueAfterMs = Infinity;
    for (const object of caches.clusterConfigs.values()) {
      const againMs = await this.#reconcileClusterConfig(object);
      requeueAfterMs = Math.min(requeueAfterMs, againMs ?? Infinity);
    }
    return requeueAfterMs === Infinity ? undefined : { requeueAfterMs };
  }

  async reconcileNamespace(namespace: string): Promise<ReconcileResult> {
    const { caches, configuration, signal } = this.#leading;
    const objects = [...caches.podConfigs.values(namespace)];
    const turn = createYielder(signal);
    const findings = await validatePodConfigs(objects, configuration().schedulableArchitectures, turn);
    for (const object of objects) {
      await turn();
      const { name = '' } = object.metadata ?? {};
      const path = podConfigsPath(namespace, name);
      await this.#writeStatus({ object, kind: podConfigKind, path, findings: findings.get(name) ?? [] });
    }
    return undefined;
  }

  /** @returns after how many milliseconds to look again; `undefined`: at the next event */
  async #reconcileClusterConfig(object: Resource): Promise<number | undefined> {
    const { client, signal, step, configuration } = this.#leading;
    const { metadata = {} } = object;
    const path = clusterConfigsPath(metadata.name ?? '');
    if (metadata.finalizers?.includes(gatesFinalizer) !== true) {
      if (metadata.deletionTimestamp !== undefined) return undefined;
      await ignoring('not-found', client.patch(path, addFinalizer(metadata), { signal }));
      await step('resources/finalizer-added');
      // The watch brings the result, and the status is written then.
      return undefined;
    }
    let gated: number | undefined;
    if (metadata.deletionTimestamp !== undefined) {
      // An interrupted watch, or one without its first list, does not show that no pod is gated.
      const { synced, watching } = this.#leading.caches.waitingPods.health();
      if (!synced || !watching) return countGatesMs;
      gated = this.#countGated();
      if (gated === 0) return await this.#release(path, metadata, metadata.deletionTimestamp);
    }
    const findings = validateClusterConfig(object, configuration().schedulableArchitectures, gated);
    await this.#writeStatus({ object, kind: clusterConfigKind, path, findings, gatedPods: gated });
    return gated === undefined ? undefined : countGatesMs;
  }

  /** Removes the finalizer, after the webhooks have seen the deletion. @returns milliseconds until then */
  async #release(path: string, metadata: ObjectMeta, deletedAt: string): Promise<number | undefined> {
    const { client, signal, serverNow, step, log } = this.#leading;
    const sinceMs = serverNow() - Date.parse(deletedAt);
    if (sinceMs < webhooksLagMs) return Math.max(1, webhooksLagMs - sinceMs);
    await step('resources/before-release');
    await ignoring('not-found', client.patch(path, removeFinalizer(metadata), { signal }));
    log.info({ name: metadata.name }, 'no pod is gated any more; the finalizer was removed');
    return undefined;
  }

  /** Without pods that are being deleted: they keep their gate while other finalizers hold them. */
  #countGated(): number {
    return [...this.#leading.caches.waitingPods.values()].filter(
      ({ pod }) => pod.metadata?.deletionTimestamp === undefined && carriesGate(pod),
    ).length;
  }

  async #writeStatus(target: {
    readonly object: Resource;
    readonly kind: string;
    readonly path: string;
    readonly findings: readonly Finding[];
    readonly gatedPods?: number | undefined;
  }): Promise<void> {
    const { serverNow, step } = this.#leading;
    const { object, findings, gatedPods } = target;
    const { generation } = object.metadata ?? {};
    const status = statusFor(findings, { generation, gatedPods }, object.status, serverNow());
    if (status === undefined) return;
    await applyStatus(this.#leading, target, status);
    await step('resources/status-written');
  }
}

/** Guarded JSON patches add and remove the finalizer, so other controllers' finalizers stay. */
function addFinalizer(metadata: ObjectMeta): Patch {
  const path = '/metadata/finalizers';
  const isFirst = (metadata.finalizers ?? []).length === 0;
  const add = isFirst ? { path, value: [gatesFinalizer] } : { path: `${path}/-`, value: gatesFinalizer };
  return guardedPatch({ metadata }, [{ op: 'add', ...add }]);
}

function removeFinalizer(metadata: ObjectMeta): Patch {
  const index = (metadata.finalizers ?? []).indexOf(gatesFinalizer);
  return guardedPatch({ metadata }, [{ op: 'remove', path: `/metadata/finalizers/${index}` }]);
}
