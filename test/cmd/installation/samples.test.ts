import t from 'tap';
import { parseSamples, Samples } from '../../../cmd/installation/samples.ts';
import { createMetrics, gauge } from '../../../src/telemetry/metrics.ts';

t.test("the program's own metrics are parsed", async (t) => {
  const metrics = createMetrics();
  metrics.gauge(gauge('a', 'A.', { state: ['x', 'y'] }), { state: 'x' }).set(2);
  metrics.gauge(gauge('b', 'B.')).set(Number.NaN);
  metrics.info(gauge('c', 'C.', { hash: [] }))({ hash: 'quote " backslash \\ line\n, comma' });
  const samples = new Samples(parseSamples(await metrics.render()));
  t.equal(samples.value('a', { state: 'x' }), 2);
  t.equal(samples.value('a', { state: 'y' }), 0);
  t.equal(samples.value('a', { state: 'z' }), undefined);
  t.strictSame(samples.counts('a', 'state'), { x: 2 });
  t.ok(Number.isNaN(samples.value('b')));
  t.equal(samples.label('c', 'hash'), 'quote " backslash \\ line\n, comma');
});

t.test('lines that are no samples are ignored', (t) => {
  t.strictSame(parseSamples('<html>\n# HELP a\na\na 1 2 3\n\n  \n'), []);
  t.strictSame(parseSamples(`a{b="${'x'.repeat(5000)}"} 1\n`), [], 'longer than ours');
  t.end();
});
