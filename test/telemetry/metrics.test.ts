import t from 'tap';
import {
  counter,
  createMetrics,
  gauge,
  histogram,
  itemCounts,
  passingMetrics,
} from '../../src/telemetry/metrics.ts';
import { addProcessMetrics, processMetrics } from '../../src/telemetry/process.ts';

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

t.test('an item counts once in each of its series', async (t) => {
  const metrics = createMetrics();
  const show = itemCounts(metrics, level);
  show([1, 2], () => [{ use: 'a' }, { use: 'a' }]);
  t.match(await metrics.render(), 'test_level{use="a"} 2');
  show([], () => []);
  t.match(await metrics.render(), 'test_level{use="a"} 0');
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

const states = gauge('pods', 'Pods.', { state: ['a', 'b'] });
const expiry = gauge('expires', 'Expiry.');
const done = counter('done_total', 'Done.');
const spread = histogram('took', 'Took.', [1]);

t.test('at the end gauges are reset, counters are kept', async (t) => {
  const metrics = createMetrics();
  const passing = passingMetrics(metrics);
  const level = passing.gauge(states, { state: 'a' });
  passing.gauge(states, { state: 'b' }).set(2);
  passing.gauge(expiry).set(Number.NaN);
  passing.counter(done).inc();
  passing.histogram(spread).observe(1);
  let scrapes = 0;
  passing.beforeScrape(() => level.set(++scrapes));
  t.match(await passing.render(), 'pods{state="a"} 1\npods{state="b"} 2\n');
  passing.end();
  const page = await metrics.render();
  t.match(page, 'pods{state="a"} 0\npods{state="b"} 0\n');
  t.match(page, 'expires Nan\n', 'unknown stays unknown');
  t.match(page, 'done_total 1\n');
  t.match(page, 'took_count 1\n');
  t.equal(scrapes, 1, 'its callback does not run before scrapes any more');
});

t.test('late changes do not affect the next work', async (t) => {
  const metrics = createMetrics();
  const first = passingMetrics(metrics);
  const late = first.gauge(states, { state: 'a' });
  first.end();
  passingMetrics(metrics).gauge(states, { state: 'a' }).set(5);
  late.set(1);
  first.beforeScrape(() => t.fail('it has ended'));
  first.end();
  t.match(await metrics.render(), 'pods{state="a"} 5\n');
});

t.test('a callback before scrapes can be cancelled', async (t) => {
  const passing = passingMetrics(createMetrics());
  const stop = passing.beforeScrape(() => t.fail('it was ended'));
  stop();
  await passing.render();
  t.equal(passing.contentType, createMetrics().contentType);
});

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
