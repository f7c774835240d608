import t from 'tap';
import { createMetrics, type MetricSpec } from '../../src/telemetry/metrics.ts';
import { passingMetrics } from '../../src/telemetry/metrics.ts';

const gauge: MetricSpec = { name: 'pods', type: 'gauge', help: 'Pods.', labels: { state: ['a', 'b'] } };
const expiry: MetricSpec = { name: 'expires', type: 'gauge', help: 'Expiry.' };
const counter: MetricSpec = { name: 'done_total', type: 'counter', help: 'Done.' };
const spread: MetricSpec = { name: 'took', type: 'histogram', help: 'Took.', buckets: [1] };

t.test('at the end gauges are reset, counters are kept', async (t) => {
  const metrics = createMetrics();
  const passing = passingMetrics(metrics);
  const level = passing.gauge(gauge, { state: 'a' });
  passing.gauge(gauge, { state: 'b' }).set(2);
  passing.gauge(expiry).set(Number.NaN);
  passing.counter(counter).inc();
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
  const late = first.gauge(gauge, { state: 'a' });
  first.end();
  passingMetrics(metrics).gauge(gauge, { state: 'a' }).set(5);
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
