/** Metrics of the sources in files: whether their current content can be used. */
import { counter, gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';

/** The sources that are read again when their files change. */
const liveSourceNames = [
  'registry-toml',
  'docker-config',
  'credential-provider',
  'containerd',
  'cri-o',
] as const;
export type LiveSourceName = (typeof liveSourceNames)[number];

const failedReadings = counter(
  'archwright_source_failed_readings_total',
  'Reads of a source with unusable content.',
  { source: liveSourceNames },
);

const broken = gauge(
  'archwright_source_broken',
  'Set to 1 if part of a source cannot be used. Its last good content may still be in force.',
  { source: liveSourceNames },
);

/** Every metric of this folder, for the documentation. */
export const sourceMetrics: readonly MetricSpec[] = [failedReadings, broken];

export type SourceMeter = ReturnType<typeof bindSourceMetrics>;

export function bindSourceMetrics(metrics: Metrics | undefined, source: LiveSourceName) {
  const failed = metrics?.counter(failedReadings, { source });
  const now = metrics?.gauge(broken, { source });
  return {
    /** Counts one reading. @param understood whether all of it could be used */
    read(understood: boolean): void {
      if (!understood) failed?.inc();
      now?.set(understood ? 0 : 1);
    },
  };
}
