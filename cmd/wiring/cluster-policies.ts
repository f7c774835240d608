/** Live policies in a cluster. The log level follows `ClusterPodPlacementConfig/cluster`. */
import { ownNames } from '../../src/names/keys.ts';
import { watchLeader } from '../../src/kube/election/leader-watch.ts';
import { isCleanHolder } from '../../src/controller/lead/candidacy.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { KubeObject } from '../../src/kube/api/objects.ts';
import { startReflector, type Reflector } from '../../src/kube/watch/reflector.ts';
import type { LiveConfiguration } from '../../src/policy/configuration/live.ts';
import { createPolicies } from '../../src/policy/effective/policies.ts';
import { collectResources, largeConfigs } from '../../src/policy/resources/collection.ts';
import { followLogLevel } from '../../src/policy/resources/overlay.ts';
import { clusterConfigsPath, podConfigsPath } from '../../src/policy/resources/placement.ts';
import { rolloutsPath } from '../../src/policy/resources/rollout.ts';
import { systemClock } from '../../src/async/clock.ts';
import { isRecord } from '../../src/names/values.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { withOwnNamespace, type Kubernetes } from './kubernetes.ts';

/** Starts the watches. No cluster: only the configuration counts. */
export function followPolicies(options: {
  readonly configuration: LiveConfiguration;
  readonly kubernetes: Omit<Kubernetes, 'another'> | undefined;
  /** Absent: images are inspected without agents. */
  readonly fleet?: Pick<Fleet, 'isAvailable'> | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
}) {
  const { configuration: live, kubernetes, fleet, log, metrics } = options;
  const agentsAnswer = fleet && ((): boolean => fleet.isAvailable());
  if (kubernetes === undefined) {
    const policies = createPolicies({
      configuration: () => live.current(),
      controllerLeads: () => undefined,
      agentsAnswer,
    });
    return { policies, ready: () => Promise.resolve([]), close: () => undefined };
  }
  const configuration = withOwnNamespace(() => live.current(), kubernetes);
  const { namespace } = configuration();
  const { lease } = ownNames(configuration());
  const { client } = kubernetes;
  const reflect = (path: string): Reflector<KubeObject> =>
    startReflector({ client, path, isOptional: true, trim, large: largeConfigs, log, metrics });
  const sources = {
    clusterConfigs: reflect(clusterConfigsPath()),
    podConfigs: reflect(podConfigsPath()),
    rollouts: reflect(rolloutsPath()),
  };
  const leader =
    namespace === undefined
      ? undefined
      : watchLeader({ client, namespace, name: lease, clock: systemClock, log, metrics });
  const resources = collectResources({ ...sources, metrics });
  followLogLevel({ log, configuration: live, resources });
  const policies = createPolicies({
    resources,
    configuration,
    // `archwright clean` holds the Lease too, but removes gates only until it ends.
    controllerLeads: () => leader && leader.leads() && !isCleanHolder(leader.holder()),
    agentsAnswer,
  });
  return {
    policies,
    /** Resolves when custom resources and leader were read for the first time. */
    ready: (signal: AbortSignal) =>
      Promise.all([...Object.values(sources), leader].map(async (each) => each?.ready(signal))),
    close: () => {
      for (const each of Object.values(sources)) each.stop();
      leader?.close();
    },
  };
}

function trim(object: KubeObject & { readonly spec?: unknown; readonly status?: unknown }): KubeObject {
  const { name, namespace, creationTimestamp, deletionTimestamp } = object.metadata ?? {};
  const newPods = isRecord(object.status) ? object.status['newPods'] : undefined;
  return {
    metadata: { name, namespace, creationTimestamp, deletionTimestamp },
    spec: object.spec,
    // Only of rollouts.
    ...(newPods !== undefined && { status: { newPods } }),
  } as KubeObject;
}
