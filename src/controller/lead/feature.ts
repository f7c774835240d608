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
import type { BackOff } from '../../async/back-off.ts';
import type { Patch } from '../../kube/api/client.ts';
import type { KubeObject, Node } from '../../kube/api/objects.ts';
import type { WorkResult } from '../../kube/queue.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import type { MetricSpec } from '../../telemetry/metrics.ts';
import type { LeaderContext } from './leader-context.ts';

export type ReconcileResult = WorkResult;

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
  /** In log and metrics. */
  readonly name: string;
  readonly metrics?: readonly MetricSpec[];
  /** Whether the feature is needed; for settings that only a restart changes. Default: always. */
  readonly isOn?: (configuration: Configuration) => boolean;
  /** Number of keys that are reconciled at the same time. Default: 1. */
  readonly workers?: number;
  /** `requeueAfterMs` of a reconcile that returns none. Default: a key waits for its next event. */
  readonly resyncMs?: number;
  /** For keys that stand for everything: their writes cause events, so events wait for a back-off's end. */
  readonly inRounds?: true;
  /** Default: 250 ms to 60 s. */
  readonly backOff?: BackOff;
  /** What has to be known before the first reconcile. Default: complete caches. */
  readonly ready?: (leader: LeaderContext) => Promise<unknown>;
  readonly leftovers?: Leftovers;
  /** Registers listeners, which enqueue keys. Keys wait until the feature is ready. */
  start(leader: LeaderContext, enqueue: Enqueue): Promise<Work> | Work;
}
