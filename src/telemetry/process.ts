/** The process: its metrics, with the standard names of Prometheus client libraries, and its memory. */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { counter, gauge, type Metrics, type MetricSpec } from './metrics.ts';

const specs = {
  cpu: counter('process_cpu_seconds_total', 'CPU time of the process, user and system.'),
  resident: gauge('process_resident_memory_bytes', 'Resident memory of the process.'),
  heap: gauge('nodejs_heap_size_used_bytes', 'Memory of JavaScript objects.'),
  start: gauge('process_start_time_seconds', 'Start of the process.'),
  delay: gauge('nodejs_eventloop_lag_p99_seconds', 'Delay of timers since the last scrape, 99th percentile.'),
} satisfies Record<string, MetricSpec>;

export const processMetrics: readonly MetricSpec[] = Object.values(specs);

/** Version and commit are label values. These stand for them in the documentation. */
export const buildInfo = gauge('archwright_build_info', 'Always 1. `node`: version of Node.js.', {
  version: ['VERSION'],
  commit: ['COMMIT'],
  node: [process.versions.node],
});

/** Sampling interval of the event loop's delay. A shorter one would wake an idle agent more often. */
const delayResolutionMs = 50;

/** Updates the metrics of this process before each scrape. @param build version and commit */
export function addProcessMetrics(
  metrics: Metrics,
  build: { readonly version: string; readonly commit: string },
): void {
  metrics.info(buildInfo)({ ...build, node: process.versions.node });
  metrics.gauge(specs.start).set(Math.floor(performance.timeOrigin / 1000));
  const cpu = metrics.counter(specs.cpu);
  const resident = metrics.gauge(specs.resident);
  const heap = metrics.gauge(specs.heap);
  const delay = metrics.gauge(specs.delay);
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

/** Core dumps contain no memory mapping (core(5)). Child processes inherit it. */
const nothing = '0x0';

/**
 * Keeps the memory of a process with credentials private: no diagnostic reports of Node.js, which contain
 * environment and stack, and empty core dumps, even if the command line or `NODE_OPTIONS` enables them.
 * @param coredumpFilter the kernel's setting
 */
export function keepMemoryPrivate(coredumpFilter = '/proc/self/coredump_filter'): void {
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  try {
    writeFileSync(coredumpFilter, nothing);
  } catch {
    // The kernel lacks it, or /proc is read-only. Then the limits of the process decide about core dumps.
  }
}
