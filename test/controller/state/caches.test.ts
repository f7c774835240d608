/** The watches over an API server with a store: their requests, and kinds that are not installed. */
import t, { type Test } from 'tap';
import { startCaches } from '../../../src/controller/state/caches.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { connectedStore } from '../../kube/support.ts';
import { silentLog } from '../../support/captured.ts';
import { createHastyClock } from '../../support/fake-clock.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { like } from '../../support/like.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const custom = '/apis/arch.example/v1alpha1';
const podConfigs = `${custom}/podplacementconfigs`;

async function start(t: Test, prepare: (store: KubeStore) => void) {
  const { store, client } = await connectedStore(t);
  prepare(store);
  const metrics = createMetrics();
  const clock = createHastyClock();
  const caches = startCaches({ client, log: silentLog, metrics, clock });
  t.teardown(() => caches.stop());
  const shows = async (series: string) => (await metrics.render()).includes(series);
  const listsOf = (path: string): number =>
    store.requests.filter((request) => request.path === path && !request.query.has('watch')).length;
  return { store, caches, shows, waits: clock.sleeps, listsOf };
}

t.test('waiting and running pods are two watches, split by a field selector', async (t) => {
  const { store, caches, shows } = await start(t, (store) => {
    const gates = { schedulingGates: [{ name: 'arch.example/scheduling-gate' }] };
    store.put('/api/v1/namespaces/shop/pods/gated', { spec: { containers: [], ...gates } });
    store.put('/api/v1/namespaces/shop/pods/running', { spec: { nodeName: 'n1', containers: [] } });
    store.put('/api/v1/nodes/n1', {});
    store.put('/api/v1/namespaces/shop', { metadata: { labels: { team: 'a' } } });
    store.put(`${custom}/clusterpodplacementconfigs/cluster`, {});
    store.put(`${custom}/namespaces/shop/podplacementconfigs/mine`, { spec: { priority: 3 } });
  });
  await caches.ready(neverAborted);
  t.equal(caches.waitingPods.get('shop', 'gated')?.pod.metadata?.name, 'gated');
  t.equal(caches.runningPods.get('shop', 'running')?.node, 'n1');
  t.strictSame([caches.waitingPods.size, caches.runningPods.size], [1, 1]);
  t.equal(caches.nodes.get('', 'n1')?.name, 'n1');
  like(t, caches.namespaces.get('', 'shop'), { team: 'a' });
  t.equal(caches.clusterConfigs.get('', 'cluster')?.metadata?.name, 'cluster');
  like(t, caches.podConfigs.get('shop', 'mine'), { spec: { priority: 3 } }, 'kept as they are');
  const isOpen = 'archwright_kube_watches{resource="nodes",state="open"} 1';
  await store.until(() => store.watches() === 7, 'every watch');
  const selectors = store.received(/pods$/).map(({ query }) => query.get('fieldSelector'));
  t.strictSame(new Set(selectors), new Set(['spec.nodeName!=', 'spec.nodeName=']));
  t.ok(await shows(isOpen));
  t.ok(await shows('archwright_controller_cached_objects{watch="waitingPods"} 1'));
  caches.stop();
  t.ok(await shows('archwright_controller_cached_objects{watch="waitingPods"} 0'));
});

t.test('`ready` ends with the signal if the API server does not respond', async (t) => {
  const { caches } = await start(t, (store) => store.fault(/nodes$/, { status: 503 }));
  const stop = new AbortController();
  const ready = caches.ready(stop.signal);
  stop.abort(new Error('enough'));
  await t.rejects(ready, { message: 'enough' });
});

t.test('a custom resource that is not installed is empty, and is listed again later', async (t) => {
  const { store, caches, waits, shows, listsOf } = await start(t, (store) =>
    store.fault(/\/podplacementconfigs$/, { status: 404 }),
  );
  await caches.ready(neverAborted);
  t.equal(caches.podConfigs.size, 0);
  await store.until(() => listsOf(podConfigs) >= 3, 'the next lists');
  t.ok(waits.includes(30_000));
  const shown = 'archwright_kube_watches{resource="podplacementconfigs",state=';
  t.ok(await shows(`${shown}"absent"} 1`));
  t.ok(await shows(`${shown}"broken"} 0`), 'a missing kind is not a broken watch');
});

t.test('any other error for custom resources is an error', async (t) => {
  const { store, caches, listsOf } = await start(t, (store) =>
    store.fault(/\/podplacementconfigs$/, { status: 500, times: 1 }),
  );
  await caches.ready(neverAborted);
  await store.until(() => store.watches() === 7, 'every watch');
  t.equal(listsOf(podConfigs), 2);
});
