/** The watches over an API server: their requests, and kinds that are not installed. */
import t, { type Test } from 'tap';
import { startCaches } from '../../../src/controller/state/caches.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { until } from '../../support/until.ts';
import { createHastyClock } from '../../support/fake-clock.ts';
import {
  events,
  json,
  startKubeServer,
  type KubeAnswer,
  type KubeServer,
} from '../../support/kube-server.ts';
import { silentLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

const custom = '/apis/arch.example/v1alpha1';
const clusterConfigs = `${custom}/clusterpodplacementconfigs`;
const podConfigs = `${custom}/podplacementconfigs`;

const list = (...items: object[]): KubeAnswer => json({ metadata: { resourceVersion: '10' }, items });

/** The number of requests that list these objects. */
const listsOf = ({ requests }: KubeServer, of: string): number =>
  requests.filter(({ path, query }) => path === of && !query.has('watch')).length;

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
  const caches = startCaches({ client, log: silentLog, metrics, clock });
  t.teardown(async () => {
    caches.stop();
    client.close();
    await server.close();
  });
  return { server, caches, metrics, waits: clock.sleeps };
}

t.test('waiting and running pods are two watches, split by a field selector', async (t) => {
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
  await caches.ready(neverAborted);
  t.equal(caches.waitingPods.get('shop', 'gated')?.pod.metadata?.name, 'gated');
  t.equal(caches.waitingPods.size, 1);
  t.equal(caches.runningPods.get('shop', 'running')?.node, 'n1');
  t.equal(caches.runningPods.size, 1);
  t.equal(caches.nodes.get('', 'n1')?.name, 'n1');
  t.strictSame(caches.namespaces.get('', 'shop'), { team: 'a' });
  t.equal(caches.clusterConfigs.get('', 'cluster')?.metadata?.name, 'cluster');
  like(t, caches.podConfigs.get('shop', 'mine'), { spec: { priority: 3 } }, 'kept as they are');
  await server.untilReceived('/api/v1/pods?watch', 2);
  const selectors = server.requests
    .filter(({ path, query }) => path === '/api/v1/pods' && query.has('watch'))
    .map(({ query }) => query.get('fieldSelector'));
  t.strictSame(new Set(selectors), new Set(['spec.nodeName!=', 'spec.nodeName=']));

  const isOpen = 'archwright_kube_watches{resource="nodes",state="open"} 1';
  // A watch counts as open from its first response on, which comes a moment after the request.
  await until(async () => (await metrics.render()).includes(isOpen), 'an open watch');
  t.match(await metrics.render(), /archwright_controller_cached_objects\{watch="waitingPods"\} 1/);
  caches.stop();
  t.match(await metrics.render(), /archwright_controller_cached_objects\{watch="waitingPods"\} 0/);
});

t.test('`ready` ends with the signal if the API server does not respond', async (t) => {
  const { caches } = await start(t, (server) => server.script('/api/v1/nodes', json({}, 503)));
  const stop = new AbortController();
  const ready = caches.ready(stop.signal);
  stop.abort(new Error('enough'));
  await t.rejects(ready, { message: 'enough' });
});

t.test('a custom resource that is not installed is empty, and is listed again later', async (t) => {
  const { server, caches, waits, metrics } = await start(t);
  await caches.ready(neverAborted);
  t.equal(caches.podConfigs.size, 0);
  await server.untilReceived(podConfigs, 3);
  t.ok(waits.includes(30_000));
  const shown = (state: string, count: number): string =>
    `archwright_kube_watches{resource="podplacementconfigs",state="${state}"} ${count}`;
  const page = await metrics.render();
  t.ok(page.includes(shown('absent', 1)));
  t.ok(page.includes(shown('broken', 0)), 'a missing kind is not a broken watch');
});

t.test('any other error for custom resources is an error', async (t) => {
  const { server, caches } = await start(t, (prepared) => {
    prepared.script(podConfigs, json({ message: 'no' }, 500), list());
    prepared.script(`${podConfigs}?watch`, json({ message: 'no' }, 500), events());
  });
  await caches.ready(neverAborted);
  await server.untilReceived(`${podConfigs}?watch`, 2);
  t.equal(listsOf(server, podConfigs), 2);
});
