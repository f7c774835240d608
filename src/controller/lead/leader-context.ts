/** The environment of every feature while this replica leads. */
import type { Clock } from '../../async/clock.ts';
import type { FactsCache } from '../../images/cache/cache.ts';
import type { RequestOf } from '../../images/image-request.ts';
import type { CurrentNodeClasses } from '../../cluster/node-classes.ts';
import type { FactsOfPod } from '../../cluster/facts-of-pod.ts';
import type { PullSecrets } from '../../cluster/pull-secrets.ts';
import type { RecordSealer } from '../../cluster/record-seal.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { EventRecorder } from '../../kube/events/events.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import type { ChosenSide } from '../../placement/decision.ts';
import type { Policies } from '../../policy/effective/policies.ts';
import type { RolloutPolicy } from '../../policy/effective/policy.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Caches } from '../state/caches.ts';
import type { LiveWebhooks } from '../state/webhooks-file.ts';
import type { Evictor } from '../write/evictor.ts';

export interface LeaderContext {
  /** archwright's own. */
  readonly namespace: string;
  /** The agents' service account. */
  readonly agentServiceAccount: string;
  readonly signal: AbortSignal;
  /** Writes are limited, and refused once `signal` has aborted. */
  readonly client: KubeClient;
  readonly events: Pick<EventRecorder, 'record' | 'flush'>;
  readonly caches: Caches;
  /** The webhooks of the file; `undefined`: none is named. */
  readonly webhooks: LiveWebhooks | undefined;
  readonly fleet: Fleet | undefined;
  /** Image facts; shared by all features. */
  readonly cache: Pick<FactsCache, 'peek' | 'get' | 'learn' | 'forget'>;
  readonly requestOf: RequestOf;
  /** Facts of the images of one pod, with its pull secrets; waits for up to its `budgetMs`. */
  readonly factsOfPod: FactsOfPod;
  /** Shared, so that a Secret is read once for all features. */
  readonly pullSecrets: PullSecrets;
  /** The effective policy of each pod, as the webhook has it. */
  readonly policies: Policies;
  /** The classes of the cluster's nodes. */
  readonly nodeClasses: CurrentNodeClasses;
  /** Chooses where rollouts put pods. */
  readonly rollouts: { choose(pod: Pod, rollout: RolloutPolicy): Promise<ChosenSide> };
  /** The only way to evict a pod: all features share its limit. */
  readonly evictor: Pick<Evictor, 'evict'>;
  /** Absent: records have no seal, and count without one. */
  readonly recordSealer?: (() => RecordSealer) | undefined;
  /** The configuration in force, with that of `ClusterPodPlacementConfig/cluster`. Call it for each use. */
  readonly configuration: () => Configuration;
  readonly clock: Clock;
  /** The API server's wall clock, milliseconds: compare timestamps of objects with it. */
  readonly serverNow: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
}
