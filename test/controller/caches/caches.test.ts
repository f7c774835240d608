/** The watches against a server: what is asked for, and kinds that are not installed. */
import t, { type Test } from 'tap';
import { startCaches } from '../../../src/controller/caches/caches.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createHastyClock } from '../../support/fake-clock.ts';
import {
  events,
  eventsThenEnd,
  json,
  startKubeServer,
  type KubeAnswer,
  type KubeServer,
} from '../../support/kube-server.ts';

const custom = '/apis/arch.example/v1alpha1';
const clusterConfigs = `${custom}/clusterpodplacementconfigs`;
const podConfigs = `${custom}/podplacementconfigs`;

const list = (...items: object[]): KubeAnswer => json({ metadata: { resourceVersion: '10' }, items });

async function start(t: Test, prepare: (server: KubeServer) => void = () => undefined) {
  const server = await startKubeServer();
  for (const path of ['/api/v1/pods', '/api/v1/nodes', '/api/v1/namespaces']) {
    server.script(path, list());
    server.script(`${path}?watch`, events());
  }
  prepare(server);
  const client = createKubeClient({ access: server.access, userAgent: 'archwright/test' });
  const metrics = createMetrics();
  const clock = createHastyClock();
  const caches = startCaches({ client, log: createLog({ level: 'silent' }), metrics, clock });
  t.teardown(async () => {
    caches.stop();
    client.close();
    await server.close();
  });
  return { server, caches, metrics, waits: clock.sleeps };
}

void t.test('pods come in two halves, split by the server', async (t) => {
  const gated = {
    metadata: { name: 'gated', namespace: 'shop' },
    spec: { containers: [], schedulingGates: [{ name: 'arch.example/scheduling-gate' }] },
  };
  const running = {
    metadata: { name: 'running', namespace: 'shop' },
    spec: { nodeName: 'n1', containers: [] },
  };
  const { server, caches, metrics } = await start(t, (prepared) => {
    const half: KubeAnswer = (request, response) => {
      const wanted = request.query.get('fieldSelector') === 'spec.nodeName=' ? gated : running;
      list(wanted)(request, response);
    };
    prepared.script('/api/v1/pods', half);
    prepared.script('/api/v1/nodes', list({ metadata: { name: 'n1' } }));
    prepared.script('/api/v1/namespaces', list({ metadata: { name: 'shop', labels: { team: 'a' } } }));
    prepared.script(clusterConfigs, list({ metadata: { name: 'cluster' } }));
    prepared.script(`${clusterConfigs}?watch`, events());
    prepared.script(
      podConfigs,
      list({ metadata: { name: 'mine', namespace: 'shop' }, spec: { priority: 3 } }),
    );
    prepared.script(`${podConfigs}?watch`, events());
  });
  await caches.ready(AbortSignal.timeout(20_000));
  t.equal(caches.waitingPods.get('shop', 'gated')?.pod.metadata?.name, 'gated');
  t.equal(caches.waitingPods.size, 1);
  t.equal(caches.runningPods.get('shop', 'running')?.node, 'n1');
  t.equal(caches.runningPods.size, 1);
  t.equal(caches.nodes.get('', 'n1')?.name, 'n1');
  t.same(caches.namespaces.get('', 'shop')?.labels, { team: 'a' });
  t.equal(caches.clusterConfigs.get('', 'cluster')?.metadata?.name, 'cluster');
  t.match(
    caches.podConfigs.get('shop', 'mine'),
    { spec: { priority: 3 } },
    'custom resources are kept as they are',
  );
  await server.asked('/api/v1/pods?watch', 2);
  const selectors = server.requests
    .filter(({ path, query }) => path === '/api/v1/pods' && query.has('watch'))
    .map(({ query }) => query.get('fieldSelector'));
  t.same(new Set(selectors), new Set(['spec.nodeName!=', 'spec.nodeName=']));

  const isOpen = 'archwright_kube_watches{resource="nodes",state="open"} 1';
  let page = await metrics.render();
  // A watch counts as open from its first answer on, which comes a moment after the request was seen.
  while (!page.includes(isOpen)) {
    await new Promise(setImmediate);
    page = await metrics.render();
  }
  t.match(page, /archwright_controller_cached_objects\{watch="waitingPods"\} 1/);
  caches.stop();
  t.match(await metrics.render(), /archwright_controller_cached_objects\{watch="waitingPods"\} 0/);
});

void t.test('ready ends with the signal where the API server gives no answer', async (t) => {
  const { caches } = await start(t, (server) => server.script('/api/v1/nodes', json({}, 503)));
  const stop = new AbortController();
  const ready = caches.ready(stop.signal);
  stop.abort(new Error('enough'));
  await t.rejects(ready, { message: 'enough' });
});

void t.test('custom resources that are not installed are an empty collection, looked at again', async (t) => {
  const { server, caches, waits, metrics } = await start(t);
  await caches.ready(AbortSignal.timeout(20_000));
  t.equal(caches.podConfigs.size, 0);
  await server.asked(`${podConfigs}?watch`, 3);
  t.ok(waits.includes(30_000));
  const shown = (state: string, count: number): string =>
    `archwright_kube_watches{resource="podplacementconfigs",state="${state}"} ${count}`;
  t.match(await metrics.render(), shown('absent', 1));
  t.match(await metrics.render(), shown('broken', 0), 'what is not installed is not broken');
  t.equal(server.requests.filter(({ path, query }) => path === podConfigs && !query.has('watch')).length, 1);

  const changed = new Promise<void>((resolve) => caches.podConfigs.onChange(resolve));
  const item = { metadata: { name: 'mine', namespace: 'shop', resourceVersion: '20' } };
  server.script(`${podConfigs}?watch`, events({ type: 'ADDED', object: item }));
  await changed;
  t.equal(caches.podConfigs.size, 1, 'they were installed meanwhile');
  const versions = server.requests
    .filter(({ path, query }) => path === podConfigs && query.has('watch'))
    .map(({ query }) => query.get('resourceVersion'));
  t.same([...new Set(versions)], ['0'], 'the watch begins with all that exists');
});

void t.test('custom resources that are taken away are gone from the cache', async (t) => {
  const { server, caches } = await start(t, (prepared) => {
    prepared.script(
      podConfigs,
      list({ metadata: { name: 'mine', namespace: 'shop' } }),
      json({ message: 'no such kind' }, 404),
    );
    prepared.script(
      `${podConfigs}?watch`,
      eventsThenEnd({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '11' } } }),
      json({ message: 'no such kind' }, 404),
    );
  });
  await caches.ready(AbortSignal.timeout(20_000));
  t.equal(caches.podConfigs.size, 1);
  await new Promise<void>((resolve) => {
    caches.podConfigs.onEach(({ object }) => {
      if (object === undefined) resolve();
    });
  });
  t.equal(caches.podConfigs.size, 0);
  await server.asked(podConfigs, 2);
});

void t.test('any other failure of custom resources is a failure', async (t) => {
  const { server, caches } = await start(t, (prepared) => {
    prepared.script(podConfigs, json({ message: 'no' }, 500), list());
    prepared.script(`${podConfigs}?watch`, json({ message: 'no' }, 500), events());
  });
  await caches.ready(AbortSignal.timeout(20_000));
  await server.asked(`${podConfigs}?watch`, 2);
  t.equal(server.requests.filter(({ path, query }) => path === podConfigs && !query.has('watch')).length, 2);
});
