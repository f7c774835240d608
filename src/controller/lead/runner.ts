/** Runs a feature while this replica leads, and again if it fails. Other features are not affected. */
import { backOffMs, type BackOff, type Clock } from '../../async/clock.ts';
import { aborted } from '../../async/wait.ts';
import { WorkQueue } from '../../kube/queue.ts';
import { counter, counts, gauge, passingMetrics, type MetricSpec } from '../../telemetry/metrics.ts';
import type { Feature, LeaderContext } from './feature.ts';

export const leadingLevel = gauge('archwright_controller_leading', 'Set to 1 if this replica leads.');

const outcomes = ['success', 'error'] as const;

/** @param feature names of all that run */
function specsOf(feature: readonly string[]) {
  const failures = counter(
    'archwright_controller_feature_failures_total',
    'Features that failed and were restarted; the log has the error.',
    { feature },
  );
  const reconciles = counter(
    'archwright_controller_reconciles_total',
    'Reconciles. After an `error` the key is retried.',
    { feature, result: outcomes },
  );
  return { failures, reconciles };
}

export function leadingMetrics(features: readonly string[]): readonly MetricSpec[] {
  return [leadingLevel, ...Object.values(specsOf(features))];
}

const backOff = { firstMs: 1000, mostMs: 5 * 60_000 };
/** A feature that worked this long starts with the first pause again. */
const soundMs = 10 * 60_000;

/** Runs features until leadership ends; never rejects. */
export async function runFeatures(features: readonly Feature[], leader: LeaderContext): Promise<void> {
  const specs = specsOf(features.map(({ name }) => name));
  await Promise.all(features.map((feature) => runFeature(feature, leader, specs)));
}

type Count = (outcome: (typeof outcomes)[number]) => void;

async function runFeature(
  feature: Feature,
  leader: LeaderContext,
  { failures, reconciles }: ReturnType<typeof specsOf>,
): Promise<void> {
  const { signal, clock } = leader;
  const labels = { feature: feature.name };
  /** The feature failed outside of a reconcile: a defect. */
  const failed = leader.metrics.counter(failures, labels);
  const reconciled = counts(leader.metrics, reconciles, 'result', outcomes, labels);
  const log = leader.log.child(labels);
  if (feature.isOn?.(leader) === false) {
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
    const failure = await runOnce(feature, running, reconciled).catch((error: unknown) => error);
    metrics.end();
    if (signal.aborted) return;
    failed.inc();
    inRow = clock.monotonic() - startedAt >= soundMs ? 1 : inRow + 1;
    const pauseMs = backOffMs(backOff, inRow, clock.random);
    log.error({ err: failure, pauseMs }, 'a part of the controller failed and will be restarted');
    run.abort(new Error('this run of the feature failed'));
    await clock.sleep(pauseMs, signal).catch(() => undefined);
  }
}

async function runOnce(feature: Feature, leader: LeaderContext, reconciled: Count): Promise<void> {
  const { workers = 1, resyncMs, inRounds = false, backOff: pauses } = feature;
  const { signal, clock, log, caches } = leader;
  const pauseAfterWrite = createWritePause(clock);
  const queue = new WorkQueue({
    work: async (key, stopping) => {
      const result = await work.reconcile(key, stopping).catch((error: unknown) => {
        if (!stopping.aborted) reconciled('error');
        throw error;
      });
      reconciled('success');
      if (result?.wrote) await pauseAfterWrite(stopping);
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

const writePause: BackOff = { firstMs: 100, mostMs: 60_000 };
const forgottenAfterMs = 5 * 60_000;

/**
 * A pause after a reconcile that wrote. Its events then cause one more reconcile, not one each. Two writers
 * that correct each other slow down: the pause doubles with each write, until none was needed for a while.
 */
function createWritePause(clock: Clock): (signal: AbortSignal) => Promise<void> {
  let writes = 0;
  let lastAt = 0;
  return async (signal) => {
    if (clock.monotonic() - lastAt > forgottenAfterMs) writes = 0;
    lastAt = clock.monotonic();
    writes += 1;
    await clock.sleep(backOffMs(writePause, writes), signal);
  };
}
