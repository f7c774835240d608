import t from 'tap';
import { createMetrics, type MetricSpec } from '../../src/telemetry/metrics.ts';

const requests: MetricSpec = {
  name: 'test_requests_total',
  type: 'counter',
  help: 'Requests.',
  labels: { method: ['GET', 'POST'], outcome: ['ok', 'failed'] },
};
const level: MetricSpec = { name: 'test_level', type: 'gauge', help: 'Level.', labels: { use: ['a'] } };
const seconds: MetricSpec = { name: 'test_seconds', type: 'histogram', help: 'Time.', buckets: [0.1, 1] };

t.test('every series is rendered from the start', async (t) => {
  const metrics = createMetrics();
  metrics.counter(requests, { method: 'GET', outcome: 'ok' });
  metrics.gauge(level, { use: 'a' });
  metrics.histogram(seconds);
  const page = await metrics.render();
  for (const line of [
    '# HELP test_requests_total Requests.',
    '# TYPE test_requests_total counter',
    'test_requests_total{method="GET",outcome="ok"} 0',
    'test_requests_total{method="POST",outcome="failed"} 0',
    'test_level{use="a"} 0',
    'test_seconds_bucket{le="1"} 0',
    'test_seconds_count 0',
  ]) {
    t.ok(page.split('\n').includes(line), line);
  }
  t.match(metrics.contentType, /^text\/plain/);
});

t.test('requesting a metric again does not reset it', async (t) => {
  const metrics = createMetrics();
  metrics.counter(requests, { method: 'GET', outcome: 'ok' }).inc();
  metrics.counter({ ...requests }, { method: 'GET', outcome: 'ok' }).inc();
  t.match(await metrics.render(), 'test_requests_total{method="GET",outcome="ok"} 2');
});

t.test('unknown label values are counted as other', async (t) => {
  const metrics = createMetrics();
  for (let index = 0; index < 100; index++)
    metrics.counter(requests, { method: `M${index}`, outcome: 'ok' }).inc();
  metrics.counter(requests, { method: 'GET' }).inc();
  const page = await metrics.render();
  t.match(page, 'test_requests_total{method="other",outcome="ok"} 100');
  t.match(page, 'test_requests_total{method="GET",outcome="other"} 1');
  t.equal(page.match(/^test_requests_total\{/gm)?.length, 6);
});

t.test('gauges are updated before each scrape', async (t) => {
  const metrics = createMetrics();
  const child = metrics.gauge(level, { use: 'a' });
  let now = 1;
  metrics.beforeScrape(() => child.set(now));
  t.match(await metrics.render(), 'test_level{use="a"} 1');
  now = 2;
  t.match(await metrics.render(), 'test_level{use="a"} 2');
});

t.test('a wrong type or a second description of a metric throws', async (t) => {
  const metrics = createMetrics();
  t.throws(() => metrics.gauge(requests), /test_requests_total is not a gauge/);
  t.throws(() => metrics.histogram(requests), /is not a histogram/);
  t.throws(() => metrics.counter(level), /test_level is not a counter/);
  t.throws(() => metrics.counter({ ...requests, help: 'Something else.' }), /has two descriptions/);
});
