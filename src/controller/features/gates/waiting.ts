/**
 * The waiting pods, in memory only: a new leader finds them again. A pod's age comes from the API server's
 * clock when it is first seen, and then from our monotonic clock, so a clock that is set does not change it.
 */
import { createRateLimiter, RateLimiters } from '../../../async/rate-limiter.ts';
import { factsErrorCodes } from '../../../images/facts/facts.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import { timeOf, type KubeObject, type Pod } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { outcomes } from '../../../placement/decision.ts';
import {
  counter,
  counts,
  gauge,
  histogram,
  itemCounts,
  type Metrics,
  type MetricSpec,
} from '../../../telemetry/metrics.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { trimWaitingPod } from '../../state/waiting-pods.ts';

/**
 * `new`: no lookup yet. `lookup`: no answer yet. `refused`: decided, but the API server refuses the change.
 * Otherwise why the first unknown image is unknown.
 */
const waitingReasons = ['new', 'lookup', 'refused', ...factsErrorCodes] as const;
export type WaitingReason = (typeof waitingReasons)[number];

/** Upper bounds of ages, milliseconds. */
const ageBuckets = { '10s': 10_000, '1m': 60_000, '5m': 300_000, older: Infinity };

const gatedPods = gauge('archwright_gated_pods', 'Gated pods, by age (below the bound) and reason.', {
  age: Object.keys(ageBuckets),
  reason: waitingReasons,
});

/** `gate-only`: the gate was removed without a placement, because that was refused. */
const gateOutcomes = [...outcomes, 'gate-only'] as const;

const gateDecisions = counter(
  'archwright_gate_decisions_total',
  'Decisions on gated pods; a denial counts as `pending`.',
  { outcome: gateOutcomes },
);

const gatedSeconds = histogram(
  'archwright_gated_duration_seconds',
  'Time from a pod’s creation until its gate is removed.',
  // Creation times are whole seconds. Most end at a registry's answer, the last at maxGateDuration (300 s).
  [1, 2, 3, 5, 10, 20, 40, 60, 120, 300, 330, 600],
);

const gateFailureReasons = ['conflict', 'refused', 'unavailable', 'fault'] as const;

const gateFailures = counter(
  'archwright_gate_failures_total',
  'Failed attempts to remove a gate; `conflict`: the pod had changed, `fault`: a defect.',
  { reason: gateFailureReasons },
);

export const gateMetrics: readonly MetricSpec[] = [gatedPods, gateDecisions, gatedSeconds, gateFailures];

/** @param waiting the labels of each pod in `gatedPods` */
export function bindGateMetrics(metrics: Metrics, waiting: () => ReturnType<GatedPods['all']>) {
  const seconds = metrics.histogram(gatedSeconds);
  const show = itemCounts(metrics, gatedPods);
  metrics.beforeScrape(() => show(waiting(), (labels) => [labels]));
  const decided = counts(metrics, gateDecisions, 'outcome', gateOutcomes);
  return {
    removed: (outcome: (typeof gateOutcomes)[number], waitedMs: number): void => {
      decided(outcome);
      seconds.observe(waitedMs / 1000);
    },
    failed: counts(metrics, gateFailures, 'reason', gateFailureReasons),
  };
}

export const mostMs = 15_000;
const firstAttemptMs = 1000;
const spread = 0.2;

export interface GatedPod {
  readonly uid: string;
  readonly ageMs: number;
  /** What is left of its time; the fallback applies at 0. */
  readonly remainingMs: number;
  /** Why it waits; `undefined`: it does not. The cache may still show its gate. */
  reason: WaitingReason | undefined;
  /** Its age at the first of the conflicts in a row; `undefined`: the last attempt had another end. */
  conflictsSince: number | undefined;
  /** Why it waits, as its last event says. */
  reported: string | undefined;
  /** Whether an event says that its images have no common architecture. */
  isPendingReported: boolean;
}

export class GatedPods {
  readonly #leader: Pick<LeaderContext, 'clock' | 'serverNow' | 'configuration'>;
  readonly #pods = new Map<string, GatedPod>();

  constructor(leader: Pick<LeaderContext, 'clock' | 'serverNow' | 'configuration'>) {
    this.#leader = leader;
  }

  /** The entry of a pod, made if there is none. A pod of the same name with another UID is another pod. */
  get(key: string, { metadata }: Pod): GatedPod {
    const uid = metadata?.uid ?? '';
    const known = this.#pods.get(key);
    if (known?.uid === uid) return known;
    const { clock, serverNow, configuration } = this.#leader;
    // A time that is missing or in the future is now.
    const createdAt = timeOf(metadata?.creationTimestamp) || Number.POSITIVE_INFINITY;
    const bornAt = clock.monotonic() - Math.max(0, serverNow() - createdAt);
    const waiting: GatedPod = {
      uid,
      get ageMs() {
        return clock.monotonic() - bornAt;
      },
      get remainingMs() {
        return configuration().maxGateDuration - this.ageMs;
      },
      reason: 'new',
      conflictsSince: undefined,
      reported: undefined,
      isPendingReported: false,
    };
    this.#pods.set(key, waiting);
    return waiting;
  }

  forget(key: string): void {
    this.#pods.delete(key);
  }

  /** Age and reason of each pod that waits. */
  all() {
    return [...this.#pods.values()].flatMap(({ ageMs, reason }) =>
      reason === undefined ? [] : [{ age: bucketOf(ageMs), reason }],
    );
  }
}

function bucketOf(ageMs: number): string {
  return Object.entries(ageBuckets).find(([, bound]) => ageMs < bound)?.[0] ?? 'older';
}

/**
 * Milliseconds until the next attempt: 1, 2, 4, 8 and 16 s after the pod's creation, then every 15 s. They follow
 * from its age, so a new leader goes on where the last one was.
 * @param random 0 to 1: spreads pods that were created at the same time
 */
export function nextAttemptMs(ageMs: number, random: number): number {
  return Math.min(mostMs, Math.max(firstAttemptMs, ageMs)) * (1 + spread * random);
}

/** A pod with 60,000 labels takes 150 ms to read. */
const reads = { perSecond: 2, burst: 10 };
const readsOfNamespace = { perSecond: 0.5, burst: 5 };
const maxNamespaces = 5000;

/**
 * @returns reads a pod now, with the fields of a decision. `gone`: it does not exist any more, or waits no more;
 * `later`: its namespace may read again after `ms`; throws KubeError
 */
export function createPodReader({ client, clock }: Pick<LeaderContext, 'client' | 'clock'>) {
  const limiter = createRateLimiter({ ...reads, clock });
  const limiters = new RateLimiters({ ...readsOfNamespace, clock }, maxNamespaces);
  return async ({ metadata = {} }: Pod, signal: AbortSignal) => {
    const { name = '', namespace = '', uid } = metadata;
    const waitMs = limiters.get(namespace).takeOrDelayMs() || limiter.takeOrDelayMs();
    if (waitMs > 0) return { kind: 'later', ms: Math.ceil(waitMs) } as const;
    const reading = client.get<KubeObject>(paths.pods(namespace, name), { signal });
    const now = await ignoring('not-found', reading);
    const trimmed = now?.metadata?.uid === uid && now && trimWaitingPod(now, (value) => value);
    return trimmed ? ({ kind: 'waiting', pod: trimmed.pod } as const) : ({ kind: 'gone' } as const);
  };
}
