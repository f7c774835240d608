/** Metrics of the runs of credential provider plugins. */
import type { Metrics, MetricSpec } from '../../src/telemetry/metrics.ts';
import type { PluginErrorCode } from './run/plugin-error.ts';

const runOutcomes = ['ok', 'failed', 'timeout', 'refused'] as const;
type RunOutcome = (typeof runOutcomes)[number];

const runs: MetricSpec = {
  name: 'archwright_plugin_runs_total',
  type: 'counter',
  help: 'Runs of credential provider plugins by outcome; a program that is missing or that others could have written is refused. Runs that the end of the agent stopped do not count.',
  labels: { outcome: runOutcomes },
};

const runSeconds: MetricSpec = {
  name: 'archwright_plugin_run_duration_seconds',
  type: 'histogram',
  help: 'How long plugins ran, from their start to the end of their output; those that were refused do not count.',
  // Up to the minute after which they are killed.
  buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
};

/** Every metric of this folder, for the documentation. */
export const pluginMetrics: readonly MetricSpec[] = [runs, runSeconds];

export interface PluginMeter {
  /**
   * Counts one run.
   * @param code why it failed; undefined for success
   * @param durationMs undefined where no program was started
   */
  ran(code: PluginErrorCode | undefined, durationMs: number | undefined): void;
}

/** Codes that say nothing of a plugin, such as `stopped`, are not here. */
const outcomes: Readonly<Partial<Record<PluginErrorCode, RunOutcome>>> = {
  missing: 'refused',
  unsafe: 'refused',
  'not-executable': 'refused',
  'not-started': 'failed',
  failed: 'failed',
  timeout: 'timeout',
  'too-much-output': 'failed',
  'bad-response': 'failed',
};

/** Binds the metrics; without metrics nothing is counted. */
export function bindPluginMetrics(metrics: Metrics | undefined): PluginMeter {
  const counts = new Map(runOutcomes.map((outcome) => [outcome, metrics?.counter(runs, { outcome })]));
  const spread = metrics?.histogram(runSeconds);
  return {
    ran(code, durationMs) {
      const outcome = code === undefined ? 'ok' : outcomes[code];
      if (outcome === undefined) return;
      counts.get(outcome)?.inc();
      if (durationMs !== undefined) spread?.observe(durationMs / 1000);
    },
  };
}
