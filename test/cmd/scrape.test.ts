/** A pod of the cluster reads the metrics of replicas directly, without the API server. */
import t, { type Test } from 'tap';
import type { Replica } from '../../cmd/installation/replicas.ts';
import { Samples } from '../../cmd/installation/samples.ts';
import { createScrape } from '../../cmd/installation/scrape.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import { startHealth } from '../../src/serving/health.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics, gauge } from '../../src/telemetry/metrics.ts';
import { tlsDirectory } from '../serving/support.ts';
import { createCa } from '../support/certificates.ts';
import { startKubeStore } from '../support/kube-store.ts';

const never = new AbortController().signal;

async function setup(t: Test, tlsDir?: string) {
  const metrics = createMetrics();
  metrics.gauge(gauge('a', 'A.')).set(7);
  const log = createLog({ level: 'silent' });
  const server = await startHealth({ listen: '127.0.0.1:0', tlsDir, ready: {}, metrics, log });
  t.teardown(() => server.drain(0));
  const store = await startKubeStore();
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  t.teardown(async () => {
    client.close();
    await store.close();
  });
  const replica: Replica = {
    part: 'webhook',
    namespace: 'archwright',
    name: 'archwright-webhook-a',
    node: 'node-1',
    address: '127.0.0.1',
    image: 'registry.example/archwright:0.1.0',
    pool: undefined,
    isReady: true,
    isRunning: true,
    configMap: 'archwright',
    metrics: { port: server.port, isTls: tlsDir !== undefined },
    trouble: undefined,
  };
  return { server, store, replica, scrape: createScrape(client, 'direct') };
}

t.test('with and without TLS', async (t) => {
  const ca = await createCa();
  const tlsDir = await tlsDirectory(
    t,
    await ca.issue({ cn: 'webhook', dns: ['webhook'], server: true }),
    ca.cert,
  );
  for (const dir of [undefined, tlsDir]) {
    const { scrape, replica, store } = await setup(t, dir);
    const found = await scrape(replica, never);
    t.ok(found instanceof Samples);
    if (found instanceof Samples) t.equal(found.value('a'), 7);
    t.strictSame(store.requests, [], 'the API server is not asked');
  }
});

t.test('why it cannot be read', async (t) => {
  const { scrape, replica, server } = await setup(t);
  t.match(await scrape({ ...replica, isRunning: false }, never), { why: 'it does not run' });
  t.match(await scrape({ ...replica, metrics: undefined }, never), { why: 'it has no port named metrics' });
  await server.drain(0);
  t.match(await scrape(replica, never), { why: 'the connection was refused' });
});
