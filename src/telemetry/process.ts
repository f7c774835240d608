/** Metrics of the process itself, under the names that Prometheus client libraries share. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics, MetricSpec } from './metrics.ts';

const cpuSeconds: MetricSpec = {
  name: 'process_cpu_seconds_total',
  type: 'counter',
  help: 'CPU time of the process, user and system.',
};

const residentBytes: MetricSpec = {
  name: 'process_resident_memory_bytes',
  type: 'gauge',
  help: 'Memory of the process that is in RAM.',
};

const heapBytes: MetricSpec = {
  name: 'nodejs_heap_size_used_bytes',
  type: 'gauge',
  help: 'Memory that JavaScript objects take.',
};

const startTime: MetricSpec = {
  name: 'process_start_time_seconds',
  type: 'gauge',
  help: 'When the process started, in seconds since 1970.',
};

const eventLoopDelay: MetricSpec = {
  name: 'nodejs_eventloop_lag_p99_seconds',
  type: 'gauge',
  help: 'How late timers were since the last scrape, 99th percentile; work that blocks the process shows here.',
};

/** What runs. Version and commit are known only when the program starts, so the specification is made for them. */
function buildInfo(version: string, commit: string): MetricSpec {
  return {
    name: 'archwright_build_info',
    type: 'gauge',
    help: 'Always 1; the labels name the version, the commit and the version of Node.',
    labels: { version: [version], commit: [commit], node: [process.versions.node] },
  };
}

/** How often the event loop's delay is sampled; finer sampling would wake an idle agent for nothing. */
const delayResolutionMs = 50;

export const processMetrics: readonly MetricSpec[] = [
  cpuSeconds,
  residentBytes,
  heapBytes,
  startTime,
  eventLoopDelay,
];

/** What the reference page says of `archwright_build_info`. */
export const buildInfoExample = buildInfo('VERSION', 'COMMIT');

/**
 * Adds the metrics of this process, brought up to date before each scrape.
 * @param build version and commit of the program
 */
export function addProcessMetrics(
  metrics: Metrics,
  build: { readonly version: string; readonly commit: string },
): void {
  const info = buildInfo(build.version, build.commit);
  metrics.gauge(info, { ...build, node: process.versions.node }).set(1);
  metrics.gauge(startTime).set(Math.floor(performance.timeOrigin / 1000));
  const cpu = metrics.counter(cpuSeconds);
  const resident = metrics.gauge(residentBytes);
  const heap = metrics.gauge(heapBytes);
  const delay = metrics.gauge(eventLoopDelay);
  const sampled = monitorEventLoopDelay({ resolution: delayResolutionMs });
  sampled.enable();
  let counted = 0;

  metrics.beforeScrape(() => {
    const { user, system } = process.cpuUsage();
    const now = (user + system) / 1e6;
    cpu.inc(now - counted);
    counted = now;
    const { rss, heapUsed } = process.memoryUsage();
    resident.set(rss);
    heap.set(heapUsed);
    // The samples hold the interval itself too.
    const late = sampled.percentile(99) / 1e9 - delayResolutionMs / 1000;
    delay.set(Math.max(0, late));
    sampled.reset();
  });
}
