/** Metrics of the runs of credential provider plugins. */
import { counter, histogram, type Metrics, type MetricSpec } from '../../src/telemetry/metrics.ts';
import { outcomeOf, type PluginErrorCode } from './run/plugin-error.ts';

const runOutcomes = ['ok', 'failed', 'timeout', 'refused'];

const runs = counter(
  'archwright_plugin_runs_total',
  'Runs of credential provider plugins. `refused`: the program is missing, or others can write it.',
  { outcome: runOutcomes },
);

const runSeconds = histogram(
  'archwright_plugin_run_duration_seconds',
  'Duration of plugin runs.',
  // Plugins are killed after a minute.
  [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
);

export const pluginMetrics: readonly MetricSpec[] = [runs, runSeconds];

/** Counts one run. @param code of its failure @param durationMs undefined if nothing was started */
export type PluginMeter = (code: PluginErrorCode | undefined, durationMs: number | undefined) => void;

/** Without metrics, nothing is counted. */
export function bindPluginMetrics(metrics: Metrics | undefined): PluginMeter {
  const counts = new Map(runOutcomes.map((outcome) => [outcome, metrics?.counter(runs, { outcome })]));
  const durations = metrics?.histogram(runSeconds);
  return (code, durationMs) => {
    const outcome = outcomeOf(code);
    if (outcome === undefined) return;
    counts.get(outcome)?.inc();
    if (durationMs !== undefined) durations?.observe(durationMs / 1000);
  };
}
