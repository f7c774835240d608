/** Metrics of the process, with the standard names of Prometheus client libraries. */
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
  help: 'Resident memory of the process.',
};

const heapBytes: MetricSpec = {
  name: 'nodejs_heap_size_used_bytes',
  type: 'gauge',
  help: 'Memory of JavaScript objects.',
};

const startTime: MetricSpec = {
  name: 'process_start_time_seconds',
  type: 'gauge',
  help: 'Start of the process, in seconds since 1970.',
};

const eventLoopDelay: MetricSpec = {
  name: 'nodejs_eventloop_lag_p99_seconds',
  type: 'gauge',
  help: 'Delay of timers since the last scrape, 99th percentile. It rises if work blocks the process.',
};

/** Version and commit are label values, so the specification depends on them. */
function buildInfo(version: string, commit: string): MetricSpec {
  return {
    name: 'archwright_build_info',
    type: 'gauge',
    help: 'Always 1. The labels have the version, the commit and the version of Node.',
    labels: { version: [version], commit: [commit], node: [process.versions.node] },
  };
}

/** Sampling interval of the event loop's delay. A shorter one would wake an idle agent more often. */
const delayResolutionMs = 50;

export const processMetrics: readonly MetricSpec[] = [
  cpuSeconds,
  residentBytes,
  heapBytes,
  startTime,
  eventLoopDelay,
];

/** `archwright_build_info` on the reference page. */
export const buildInfoExample = buildInfo('VERSION', 'COMMIT');

/**
 * Adds the metrics of this process, updated before each scrape.
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
    // The samples include the interval.
    const late = sampled.percentile(99) / 1e9 - delayResolutionMs / 1000;
    delay.set(Math.max(0, late));
    sampled.reset();
  });
}
