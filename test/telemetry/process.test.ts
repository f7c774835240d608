import t from 'tap';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { addProcessMetrics, processMetrics } from '../../src/telemetry/process.ts';

function value(page: string, name: string): number {
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(page)?.[1]);
}

t.test('process metrics are updated at each scrape', async (t) => {
  const metrics = createMetrics();
  addProcessMetrics(metrics, { version: '1.2.3', commit: 'abc' });
  const page = await metrics.render();
  for (const { name } of processMetrics) t.match(page, `# TYPE ${name} `);
  t.match(page, `archwright_build_info{version="1.2.3",commit="abc",node="${process.versions.node}"} 1`);
  t.ok(value(page, 'process_resident_memory_bytes') > 1_000_000);
  t.ok(value(page, 'nodejs_heap_size_used_bytes') > 100_000);
  t.ok(value(page, 'nodejs_eventloop_lag_p99_seconds') >= 0);
  t.ok(Math.abs(value(page, 'process_start_time_seconds') - Date.now() / 1000) < 600);

  const before = value(page, 'process_cpu_seconds_total');
  t.ok(before > 0);
  t.ok(before <= (process.cpuUsage().user + process.cpuUsage().system) / 1e6);
  const again = value(await metrics.render(), 'process_cpu_seconds_total');
  t.ok(again >= before);
  t.ok(again <= (process.cpuUsage().user + process.cpuUsage().system) / 1e6, 'counted once');
});
