/** In a cluster, the metrics of replicas are read directly, not through the API server. */
import { createScrape, parseSamples, Samples } from '../../../cmd/installation/scrape.ts';
import t, { type Test } from 'tap';
import { startHealth } from '../../../src/serving/health.ts';
import { createMetrics, gauge } from '../../../src/telemetry/metrics.ts';
import { connectedStore } from '../../kube/support.ts';
import { tlsDirectory } from '../../serving/support.ts';
import { createCa } from '../../support/certificates.ts';
import { silentLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

async function setup(t: Test, tlsDir?: string) {
  const metrics = createMetrics();
  metrics.gauge(gauge('a', 'A.')).set(7);
  const log = silentLog;
  const server = await startHealth({ listen: '127.0.0.1:0', tls: tlsDir, ready: {}, metrics, log });
  t.teardown(() => server.drain(0));
  const { store, client } = await connectedStore(t);
  const metricsPort = { port: server.port, isTls: tlsDir !== undefined };
  const where = { namespace: 'archwright', name: 'archwright-webhook-a', address: '127.0.0.1' };
  const replica = { ...where, isRunning: true, metrics: metricsPort };
  return { server, store, replica, scrape: createScrape({ client, podNamespace: 'archwright' }) };
}

t.test('metrics are read with and without TLS', async (t) => {
  const ca = await createCa();
  const tlsDir = await tlsDirectory(
    t,
    await ca.issue({ cn: 'webhook', dns: ['webhook'], server: true }),
    ca.cert,
  );
  for (const dir of [undefined, tlsDir]) {
    const { scrape, replica, store } = await setup(t, dir);
    const found = await scrape(replica, neverAborted);
    t.ok(found instanceof Samples);
    if (found instanceof Samples) t.equal(found.value('a'), 7);
    t.strictSame(store.requests, [], 'no request to the API server');
  }
});

t.test('each failure has a reason', async (t) => {
  const { scrape, replica, server } = await setup(t);
  like(t, await scrape({ ...replica, isRunning: false }, neverAborted), { why: 'it does not run' });
  like(t, await scrape({ ...replica, metrics: undefined }, neverAborted), {
    why: 'it has no port named metrics',
  });
  await server.drain(0);
  like(t, await scrape(replica, neverAborted), { why: 'the connection was refused' });
});

t.test("the program's own metrics are parsed", async (t) => {
  const metrics = createMetrics();
  metrics.gauge(gauge('a', 'A.', { state: ['x', 'y'] }), { state: 'x' }).set(2);
  metrics.gauge(gauge('b', 'B.')).set(Number.NaN);
  metrics.info(gauge('c', 'C.', { hash: [] }))({ hash: 'quote " backslash \\ line\n, comma' });
  const samples = new Samples(await metrics.render());
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
