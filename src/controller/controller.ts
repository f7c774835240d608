/**
 * The controller: what cannot be done at admission. Replicas elect a leader by a Lease; the leader runs the features below,
 * each in a file or folder of its own, each as one function that works until its signal aborts:
 *
 * - `gates/`: decides the pods that wait behind our scheduling gate.
 * - `taints/`: gives nodes their taint, and running pods their toleration before that.
 * - `misplaced/`: moves pods off nodes whose architecture their images lack.
 * - `exec-format/`: remembers images whose binaries an architecture cannot run.
 * - `certificates/`: issues and rotates certificates; `webhook-configuration/` keeps `caBundle` and the webhooks true.
 * - `resources/`: the status of the custom resources.
 * - `running-images/`: gauges of what runs.
 *
 * They share caches (`caches.ts`), a client that refuses to write once leadership is lost, and an event recorder. They share
 * no other state: a leader that dies in the middle of anything leaves nothing that the next one cannot go on from.
 */
import type { FactsOfPod } from '../cluster/facts-of-pod.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { FactsMemory } from '../images/memory.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Configuration } from '../policy/configuration.ts';
import type { Policies } from '../policy/policies.ts';
import type { Clock } from '../telemetry/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Caches } from './caches.ts';

/** What a feature gets while this replica leads. */
export interface Leading {
  /** Aborts when leadership is lost or the program ends. */
  readonly signal: AbortSignal;
  /** Writes are limited, and refused once `signal` has aborted. */
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly caches: Caches;
  readonly fleet: Fleet | undefined;
  /** What is known of images; shared by all features. */
  readonly memory: FactsMemory;
  /** Facts of the images of one pod, with its pull secrets; waits as long as it is told. */
  readonly factsOfPod: FactsOfPod;
  /** The effective policy of each pod, as the webhook has it. */
  readonly policies: Policies;
  /** The configuration in force; ask for each use. */
  readonly configuration: () => Configuration;
  readonly clock: Clock;
  /** The API server's wall clock, milliseconds: what timestamps of objects are compared with. */
  readonly serverNow: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  /**
   * Called between the steps of an operation, with the step's name (`gates/patched`, `taints/pods-done`, …). Does nothing but
   * in tests, which stop the process there.
   */
  readonly step: (name: string) => Promise<void> | void;
}

/** Works until `leading.signal` aborts, then ends what it is in the middle of and resolves. Only a defect rejects. */
export type Feature = (leading: Leading) => Promise<void>;
