/** Runs a feature while this replica leads, and again if it fails. Other features are not affected. */
import { backOffMs } from '../../async/clock.ts';
import { aborted } from '../../async/wait.ts';
import { WorkQueue } from '../../kube/queue.ts';
import { counter, gauge, passingMetrics, type MetricSpec } from '../../telemetry/metrics.ts';
import type { Feature, LeaderContext } from './feature.ts';

export const leadingLevel = gauge('archwright_controller_leading', 'Set to 1 if this replica leads.');

/** @param features names of all that run */
export function featureFailures(features: readonly string[]): MetricSpec {
  return counter(
    'archwright_controller_feature_failures_total',
    'Features that failed and were restarted; the log has the error.',
    { feature: features },
  );
}

const reconcileOutcomes = ['success', 'error'] as const;
export type ReconcileOutcome = (typeof reconcileOutcomes)[number];

export function featureReconciles(features: readonly string[]): MetricSpec {
  return counter(
    'archwright_controller_reconciles_total',
    'Reconciles. After an `error` the key is retried.',
    { feature: features, result: reconcileOutcomes },
  );
}

export const leadingMetrics = (features: readonly string[]): readonly MetricSpec[] => [
  leadingLevel,
  featureFailures(features),
  featureReconciles(features),
];

export interface FeatureCounters {
  /** The feature failed outside of a reconcile: a defect. */
  readonly failed: () => void;
  readonly reconciled: (outcome: ReconcileOutcome) => void;
}

const backOff = { firstMs: 1000, mostMs: 5 * 60_000 };
/** A feature that worked this long starts with the first pause again. */
const soundMs = 10 * 60_000;

/** Runs a feature until leadership ends; never rejects. */
export async function runFeature(
  feature: Feature,
  leader: LeaderContext,
  counters: FeatureCounters,
): Promise<void> {
  const { signal, clock } = leader;
  const log = leader.log.child({ feature: feature.name });
  if (feature.isOn?.(leader.configuration()) === false) {
    log.debug('the settings turn this part of the controller off');
    return;
  }
  let inRow = 0;
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    // Listeners and loops of a failed run end with its own signal, and its gauges are not true any more.
    const run = new AbortController();
    const metrics = passingMetrics(leader.metrics);
    const running = { ...leader, log, metrics, signal: AbortSignal.any([signal, run.signal]) };
    try {
      await runOnce(feature, running, counters);
    } catch (error) {
      if (signal.aborted) return;
      counters.failed();
      inRow = clock.monotonic() - startedAt >= soundMs ? 1 : inRow + 1;
      const pauseMs = backOffMs(backOff, inRow, clock.random);
      log.error({ err: error, pauseMs }, 'a part of the controller failed and will be restarted');
      run.abort(new Error('this run of the feature failed'));
      metrics.end();
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    } finally {
      metrics.end();
    }
  }
}

async function runOnce(
  feature: Feature,
  leader: LeaderContext,
  { reconciled }: FeatureCounters,
): Promise<void> {
  const { workers = 1, resyncMs, inRounds = false, backOff: pauses } = feature;
  const { signal, clock, log, caches } = leader;
  const queue = new WorkQueue({
    work: async (key, stopping) => {
      const result = await work.reconcile(key, stopping).catch((error: unknown) => {
        if (!stopping.aborted) reconciled('error');
        throw error;
      });
      reconciled('success');
      return result ?? (resyncMs === undefined ? undefined : { requeueAfterMs: resyncMs });
    },
    workers,
    clock,
    log,
    waitsForBackOff: inRounds,
    backOff: pauses,
  });
  const work = await feature.start(leader, (key, afterMs) => {
    if (!signal.aborted) queue.add(key, afterMs);
  });
  try {
    await (feature.ready?.(leader) ?? caches.ready(signal).catch(() => undefined));
    for (const key of work.keys()) queue.add(key);
    queue.start();
    await aborted(signal);
    await queue.stop();
  } finally {
    await work.close?.();
  }
}
