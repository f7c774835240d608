import t from 'tap';
import { counter, createMetrics, gauge, histogram } from '../../src/telemetry/metrics.ts';

const labels = { method: ['GET', 'POST'], outcome: ['ok', 'failed'] };
const requests = counter('test_requests_total', 'Requests.', labels);
const level = gauge('test_level', 'Level.', { use: ['a'] });
const seconds = histogram('test_seconds', 'Time.', [0.1, 1]);

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

t.test('an info has one series, with the labels that it got last', async (t) => {
  const metrics = createMetrics();
  const set = metrics.info(gauge('test_info', 'Version.', { version: [] }));
  for (const version of ['1', '2']) set({ version });
  t.strictSame((await metrics.render()).match(/^test_info.*/gm), ['test_info{version="2"} 1']);
});

t.test('a wrong type or a second description of a metric throws', async (t) => {
  const metrics = createMetrics();
  t.throws(() => metrics.gauge(requests), /test_requests_total is not a gauge/);
  t.throws(() => metrics.histogram(requests), /is not a histogram/);
  t.throws(() => metrics.counter(level), /test_level is not a counter/);
  t.throws(() => metrics.counter({ ...requests, help: 'Something else.' }), /has two descriptions/);
});
