/** Metrics of the sources in files: whether their current content can be used. */
import { gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';

/** The sources that are read again when their files change. */
const liveSourceNames = [
  'registry-toml',
  'docker-config',
  'credential-provider',
  'containerd',
  'cri-o',
] as const;
export type LiveSourceName = (typeof liveSourceNames)[number];

const broken = gauge(
  'archwright_source_broken',
  'Set to 1 if part of a source cannot be used. Its last good content may still be in force.',
  { source: liveSourceNames },
);

/** Every metric of this folder, for the documentation. */
export const sourceMetrics: readonly MetricSpec[] = [broken];

/** @returns sets whether all of the content could be used */
export function bindSourceMetrics(metrics: Metrics | undefined, source: LiveSourceName) {
  const now = metrics?.gauge(broken, { source });
  return (isUsable: boolean): void => now?.set(isUsable ? 0 : 1);
}
