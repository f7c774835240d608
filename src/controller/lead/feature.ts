/**
 * A feature of the leader: its folder in `features/`, and one line in the list of `features.ts`. The runner
 * (`runner.ts`) gives it a queue of keys, restarts it after a defect, and ends it with leadership.
 *
 * The contract: `reconcile(key)` compares actual and desired state, makes the changes, and may return when to
 * run again. It keeps no state that the next leader would miss.
 *
 * - A key is a pod, a namespace, or a constant for work that looks at everything at once.
 * - An event adds a key. Several events of a key are one reconcile; an event during a reconcile adds another.
 * - An error causes a retry after a back-off (`WorkQueue`): longer if the API server requires it, at first
 *   quiet for temporary errors and conflicts.
 */
import type { Clock, BackOff } from '../../async/clock.ts';
import type { FactsCache } from '../../images/cache/cache.ts';
import type { RequestOf } from '../../images/facts/facts.ts';
import type { CurrentNodeClasses } from '../../cluster/nodes.ts';
import type { FactsOfPod } from '../../cluster/facts-of-pod.ts';
import type { PullSecrets } from '../../cluster/pull-secrets.ts';
import type { SealOf } from '../../cluster/record-seal.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import type { KubeClient, Patch } from '../../kube/api/client.ts';
import type { KubeObject, Node, Pod } from '../../kube/api/objects.ts';
import type { EventRecorder } from '../../kube/events/events.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import type { ChosenSide } from '../../placement/decision.ts';
import type { Policies } from '../../policy/effective/policies.ts';
import type { RolloutPolicy } from '../../policy/effective/policy.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics, MetricSpec } from '../../telemetry/metrics.ts';
import type { Caches } from '../state/caches.ts';
import type { LiveWebhooks } from '../state/webhooks-file.ts';
import type { Evict } from '../write/evictor.ts';
import type { WorkResult } from '../../kube/queue.ts';

/** The environment of every feature while this replica leads. */
export interface LeaderContext {
  /** archwright's own. */
  readonly namespace: string;
  /** The agents' service account. */
  readonly agentServiceAccount: string;
  readonly signal: AbortSignal;
  /** Writes are limited, and refused once `signal` has aborted. */
  readonly client: KubeClient;
  readonly events: Pick<EventRecorder, 'record'>;
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
  readonly evict: Evict;
  /** Absent: records have no seal, and count without one. */
  readonly sealOf?: SealOf | undefined;
  /** The configuration in force, with that of `ClusterPodPlacementConfig/cluster`. Call it for each use. */
  readonly configuration: () => Configuration;
  readonly clock: Clock;
  /** The API server's wall clock, milliseconds: compare timestamps of objects with it. */
  readonly serverNow: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** `wrote`: a pause follows, which grows while another writer reverts each write. */
export type ReconcileResult = (NonNullable<WorkResult> & { readonly wrote?: boolean }) | undefined | void;

/** Adds a key to the queue of a feature now, or after a while. */
export type Enqueue = (key: string, afterMs?: number) => void;

export interface Work {
  /** The keys to begin with. */
  keys(): Iterable<string>;
  /** Must be safe to repeat. `signal` aborts when leadership is lost. Any error is retried with back-off. */
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>;
  /** Ends what `start` has started. Gauges and callbacks before scrapes end by themselves. */
  close?(): Promise<void> | void;
}

type RemovalOfNode = (node: Node) => Patch | undefined;

/** What a feature leaves in the cluster, and `archwright clean` removes. */
export interface Leftovers {
  /** @returns the Secrets and ConfigMaps of archwright's namespace, in the order of their removal */
  readonly objects?: (
    configuration: Configuration,
  ) => readonly { readonly kind: 'Secret' | 'ConfigMap'; readonly name: string }[];
  readonly nodes?: {
    /** Names the step, and what is removed, in the report. */
    readonly step: string;
    readonly what: string;
    readonly labelSelector?: string;
    /**
     * @param lease reads archwright's
     * @returns makes the patch of a node; `undefined`: nothing of ours is on it
     */
    readonly removal: (
      configuration: Configuration,
      lease: () => Promise<KubeObject | undefined>,
    ) => RemovalOfNode | Promise<RemovalOfNode>;
  };
  /** All objects of another kind that the selector selects. */
  readonly others?: {
    readonly step: string;
    readonly kind: string;
    readonly path: (name?: string) => string;
    readonly fieldSelector: string;
  };
}

export interface Feature {
  /** Its name in log and metrics. */
  readonly name: string;
  readonly metrics?: readonly MetricSpec[];
  /** Whether the feature is needed; for settings that only a restart changes. Default: always. */
  readonly isOn?: (leader: LeaderContext) => boolean;
  /** Number of keys that are reconciled at the same time. Default: 1. */
  readonly workers?: number;
  /** `requeueAfterMs` of a reconcile that returns none. Default: a key waits for its next event. */
  readonly resyncMs?: number;
  /** Keys that stand for everything: their writes cause events, so events wait for a back-off's end. */
  readonly inRounds?: true;
  /** Default: 250 ms to 60 s. */
  readonly backOff?: BackOff;
  /** What has to be known before the first reconcile. Default: complete caches. */
  readonly ready?: (leader: LeaderContext) => Promise<unknown>;
  readonly leftovers?: Leftovers;
  /** Registers listeners, which enqueue keys. Keys wait until the feature is ready. */
  start(leader: LeaderContext, enqueue: Enqueue): Promise<Work> | Work;
}
