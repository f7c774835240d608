/**
 * Custom resources: their status says whether they are in force. The leader's log level follows
 * `ClusterPodPlacementConfig/cluster`. Keys: the cluster's object, and each namespace, because its objects can
 * conflict. A status is written by server-side apply, and only if it changes.
 */
import { createYielder } from '../../../async/yield-to-event-loop.ts';
import type { KubeObject } from '../../../kube/api/objects.ts';
import {
  clusterConfigKind,
  clusterConfigsPath,
  podConfigKind,
  podConfigsPath,
} from '../../../policy/resources/placement.ts';
import type { Feature, LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import { applyStatus } from '../../write/own-objects.ts';
import { conditionsOf, type Finding } from '../../write/conditions.ts';
import { validateClusterConfig, validatePodConfigs } from './validation.ts';

const clusterKey = 'cluster';
const configurationKey = 'configuration';

/** The configuration is polled. It only affects the status, so a delay does no harm. */
const configurationIntervalMs = 10_000;

export const customResources: Feature = {
  name: 'custom-resources',
  workers: 2,
  start: (leader, enqueue) => {
    const { caches, configuration } = leader;
    let current = configuration();

    const allKeys = (): readonly string[] => [
      clusterKey,
      ...[...caches.podConfigs.values()].map(({ metadata }) => namespaceKey(metadata?.namespace ?? '')),
    ];
    function reconcileConfiguration(): ReconcileResult {
      if (configuration() !== current) {
        current = configuration();
        for (const key of allKeys()) enqueue(key);
      }
      return { requeueAfterMs: configurationIntervalMs };
    }

    caches.clusterConfigs.onEach(() => enqueue(clusterKey));
    caches.podConfigs.onEach(({ namespace }) => enqueue(namespaceKey(namespace)));
    return {
      keys: () => [...allKeys(), configurationKey],
      reconcile: async (key) => {
        if (key === configurationKey) return reconcileConfiguration();
        return await (key === clusterKey
          ? reconcileCluster(leader)
          : reconcileNamespace(leader, namespaceOf(key)));
      },
    };
  },
};

const namespaceKey = (namespace: string): string => `${podConfigKind}/${namespace}`;
const namespaceOf = (key: string): string => key.slice(key.indexOf('/') + 1);

async function reconcileCluster(leader: LeaderContext): Promise<void> {
  const { log, configuration, caches } = leader;
  log.level = configuration().logLevel;
  for (const object of caches.clusterConfigs.values()) {
    const path = clusterConfigsPath(object.metadata?.name ?? '');
    const findings = validateClusterConfig(object, configuration().schedulableArchitectures);
    await writeStatus(leader, { object, kind: clusterConfigKind, path }, findings);
  }
}

async function reconcileNamespace(leader: LeaderContext, namespace: string): Promise<void> {
  const { caches, configuration, signal } = leader;
  const objects = [...caches.podConfigs.values(namespace)];
  const turn = createYielder(signal);
  const findings = await validatePodConfigs(objects, configuration().schedulableArchitectures, turn);
  for (const object of objects) {
    await turn();
    const { name = '' } = object.metadata ?? {};
    const target = { object, kind: podConfigKind, path: podConfigsPath(namespace, name) };
    await writeStatus(leader, target, findings.get(name) ?? []);
  }
}

function writeStatus(
  leader: LeaderContext,
  target: { readonly object: KubeObject; readonly kind: string; readonly path: string },
  findings: readonly Finding[],
): Promise<void> {
  return applyStatus(leader, target, conditionsOf(target.object, findings, leader.serverNow()));
}
