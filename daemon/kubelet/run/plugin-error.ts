/** Failures of plugins, and the metrics of their runs. */
import { counter, counts, histogram, type Metrics, type MetricSpec } from '../../../src/telemetry/metrics.ts';

/** The outcome that is counted, if any. */
const outcomes = {
  missing: 'refused',
  unsafe: 'refused',
  'not-executable': 'refused',
  'not-started': 'failed',
  failed: 'failed',
  timeout: 'timeout',
  'too-much-output': 'failed',
  'bad-response': 'failed',
  stopped: undefined,
  'no-token': undefined,
} as const;

export type PluginErrorCode = keyof typeof outcomes;

/** Messages never quote the standard output of a plugin. */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  readonly code: PluginErrorCode;
  /** What a program that failed had printed. It may hold secrets. */
  readonly stdout: Buffer | undefined;
  constructor(code: PluginErrorCode, message: string, stdout?: Buffer) {
    super(message);
    this.code = code;
    this.stdout = stdout;
  }
}

const runOutcomes = ['ok', 'failed', 'timeout', 'refused'] as const;

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

export type PluginMeter = ReturnType<typeof bindPluginMetrics>;

/** Without metrics, nothing is counted. */
export function bindPluginMetrics(metrics: Metrics | undefined) {
  const count = metrics && counts(metrics, runs, 'outcome', runOutcomes);
  const durations = metrics?.histogram(runSeconds);
  /** Counts one run. @param code of its failure @param durationMs undefined if nothing was started */
  return (code: PluginErrorCode | undefined, durationMs: number | undefined): void => {
    const outcome = code === undefined ? 'ok' : outcomes[code];
    if (outcome === undefined) return;
    count?.(outcome);
    if (durationMs !== undefined) durations?.observe(durationMs / 1000);
  };
}
