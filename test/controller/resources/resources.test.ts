/** The feature over an API server with a store: what it writes, when, and what it does not change. */
import t, { type Test } from 'tap';
import { customResources } from '../../../src/controller/resources/resources.ts';
import type { ResourceStatus } from '../../../src/controller/resources/conditions.ts';
import { systemClock } from '../../../src/async/clock.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { collectResources } from '../../../src/policy/resources/collection.ts';
import { overlaid } from '../../../src/policy/resources/overlay.ts';
import { clusterConfig, podConfig } from '../../policy/resources/objects.ts';
import { startLeading, type TestLeading, type TestLeadingOptions } from '../leading.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { until } from '../../support/until.ts';

const clusterPath = '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster';
const podPath = (name: string, namespace = 'shop'): string =>
  `/apis/arch.example/v1alpha1/namespaces/${namespace}/podplacementconfigs/${name}`;

type Stored = KubeObject & { readonly status?: ResourceStatus };

/** Runs the feature. The test fires its timers. */
async function run(t: Test, test: Pick<TestLeading, 'leading' | 'depose'>) {
  const timers = new Map<() => void, number>();
  const timer = (ms: number, action: () => void) => {
    timers.set(action, ms);
    return () => void timers.delete(action);
  };
  const running = customResources({ ...test.leading, clock: { ...systemClock, timer } });
  t.teardown(async () => {
    test.depose();
    await running;
  });
  const fire = (): void => {
    for (const action of timers.keys()) {
      timers.delete(action);
      action();
    }
  };
  /** Fires the timers until this holds. */
  const fireUntil = (holds: () => boolean, what: string): Promise<void> =>
    until(() => {
      if (!holds()) fire();
      return holds();
    }, what);
  return { fire, fireUntil, running, waiting: () => [...timers.values()] };
}

async function begin(t: Test, options: TestLeadingOptions = {}) {
  const test = await startLeading(t, options);
  return { ...test, ...(await run(t, test)) };
}

function condition(object: Stored | undefined, type: string): string | undefined {
  const found = object?.status?.conditions?.find((each) => each.type === type);
  return found && `${found.status} ${found.reason}`;
}

const hasStatus = (store: KubeStore, name: string): boolean =>
  condition(store.get(podPath(name)) as Stored, 'Available') !== undefined;

const gated = (gate = 'arch.example/scheduling-gate', metadata: object = {}): object => ({
  metadata,
  spec: { schedulingGates: [{ name: gate }], containers: [{ name: 'app', image: 'x' }] },
});
/** The ClusterPodPlacementConfig while it is being deleted. */
const deleted = (...finalizers: string[]): object => ({
  ...clusterConfig({}),
  metadata: { name: 'cluster', deletionTimestamp: '2026-11-21T09:00:00Z', finalizers },
});
const ourFinalizer = 'arch.example/gates';
const afterDeletion = Date.parse('2026-11-21T10:00:00Z');
const podOf = (name: string): string => `/api/v1/namespaces/shop/pods/${name}`;

t.test('the cluster object gets finalizer and status, once', async (t) => {
  const { store, leading } = await begin(t);
  store.put(clusterPath, { ...clusterConfig({ preferredArchitecture: 'arm64' }) });
  const object = (): Stored | undefined => store.get(clusterPath) as Stored | undefined;
  await until(() => condition(object(), 'Available') === 'True InForce', 'a status');
  t.same(object()?.metadata?.finalizers, ['arch.example/gates']);
  t.equal(condition(object(), 'Degraded'), 'False AsWritten');
  t.equal(condition(object(), 'Progressing'), 'False Settled');
  const writes = store.writes().map(({ method, path, query }) => [method, path, query.get('fieldManager')]);
  t.same(writes, [
    ['PATCH', clusterPath, null],
    ['PATCH', `${clusterPath}/status`, 'archwright-controller'],
  ]);
  const applied = JSON.parse(store.writes()[1]?.body ?? '') as KubeObject;
  t.equal(applied.metadata?.uid, object()?.metadata?.uid, 'only this object');
  t.ok(applied.metadata?.uid);
  const version = object()?.metadata?.resourceVersion;
  await until(
    () => leading.caches.clusterConfigs.get('', 'cluster')?.metadata?.resourceVersion === version,
    'the cached object',
  );
  store.put('/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/x', podConfig({}, 'x'));
  await until(() => hasStatus(store, 'x'), 'the next object');
  t.equal(store.writes().length, 3, 'no write without a change');
});

t.test("others' finalizers stay", async (t) => {
  const { store } = await begin(t);
  const metadata = { name: 'cluster', finalizers: ['x.example/y'] };
  store.put(clusterPath, { ...clusterConfig({}), metadata });
  const finalizers = () => (store.get(clusterPath) as KubeObject | undefined)?.metadata?.finalizers;
  await until(() => finalizers()?.includes(ourFinalizer), 'ours is added');
  t.same(finalizers(), ['x.example/y', ourFinalizer]);
});

t.test('the status of namespaced objects follows changes: used, invalid, in conflict', async (t) => {
  const { store } = await begin(t, { configuration: { schedulableArchitectures: ['amd64'] } });
  const of = (name: string): Stored | undefined => store.get(podPath(name)) as Stored | undefined;
  const put = (name: string, spec: object, second: number): void => {
    const metadata = { name, namespace: 'shop', creationTimestamp: `2026-11-21T10:00:0${second}Z` };
    store.put(podPath(name), { ...podConfig(spec, name), metadata });
  };
  put('older', { priority: 4 }, 1);
  put('younger', { priority: 4, fallbackArchitecture: 's390x' }, 2);
  put('broken', { priority: 400 }, 3);
  await until(() => condition(of('younger'), 'Conflict') === 'True SamePriority', 'a conflict');
  await until(() => condition(of('older'), 'Conflict') === 'False None', 'the other');
  await until(() => condition(of('broken'), 'Available') === 'False Invalid', 'invalid');
  t.equal(condition(of('younger'), 'Degraded'), 'True ArchitecturesLeftOut');
  t.equal(of('younger')?.metadata?.finalizers, undefined, 'no finalizer');
  store.remove(podPath('older'));
  await until(() => condition(of('younger'), 'Conflict') === 'False None', 'the end of the conflict');
});

t.test('deletion of the cluster object waits until no pod is gated', async (t) => {
  let now = Date.parse('2026-11-21T10:00:00Z');
  const { store, leading, waiting, fire, fireUntil, steps } = await begin(t, { now: () => now });
  for (const name of ['a', 'b']) store.put(podOf(name), gated());
  store.put(podOf('other'), gated('x'));
  store.put(clusterPath, clusterConfig({}));
  const object = (): Stored | undefined => store.get(clusterPath) as Stored | undefined;
  await until(() => object()?.metadata?.finalizers?.length === 1, 'the finalizer');
  await leading.client.delete(clusterPath, { signal: leading.signal });
  await until(() => object()?.status?.gatedPods === 2, 'the gates are counted');
  t.equal(condition(object(), 'Progressing'), 'True WaitingForGates');

  store.remove(podOf('a'));
  await fireUntil(() => object()?.status?.gatedPods === 1, 'the next check');
  store.remove(podOf('b'));
  await fireUntil(() => waiting().includes(3000), 'only after webhooks have had time to see the deletion');
  t.ok(object(), 'it still exists');
  now += 3000;
  fire();
  await until(() => object() === undefined, 'the deletion');
  t.ok(steps.includes('resources/before-release'));
});

t.test('deletion of the cluster object waits while pods are not listed or not watched', async (t) => {
  for (const health of [
    { synced: false, watching: false },
    { synced: true, watching: false },
  ]) {
    const test = await startLeading(t, { now: () => afterDeletion });
    test.store.put(clusterPath, deleted(ourFinalizer));
    const { caches } = test.leading;
    let isSeen = false;
    const waitingPods = {
      ...caches.waitingPods,
      health: () => (isSeen ? caches.waitingPods.health() : health),
      values: () => [],
    };
    const leading = { ...test.leading, caches: { ...caches, waitingPods } };
    const { waiting, fireUntil } = await run(t, { ...test, leading });
    await until(() => waiting().includes(1000), 'the next check');
    t.ok(test.store.get(clusterPath));
    isSeen = true;
    await fireUntil(() => test.store.get(clusterPath) === undefined, 'it may go');
  }
});

t.test('deletion of the cluster object does not wait for terminating pods', async (t) => {
  const test = await startLeading(t, { now: () => afterDeletion });
  const going = { deletionTimestamp: '2026-11-21T09:00:00Z', finalizers: ['x.example/held'] };
  test.store.put(podOf('going'), gated(undefined, going));
  await until(() => test.leading.caches.waitingPods.size === 1, 'the cached pod');
  test.store.put(clusterPath, deleted('x.example/y', ourFinalizer, 'x.example/z'));
  await run(t, test);
  const finalizers = () => (test.store.get(clusterPath) as Stored | undefined)?.metadata?.finalizers;
  await until(() => finalizers()?.length === 2, 'removal of our finalizer');
  t.same(finalizers(), ['x.example/y', 'x.example/z'], "others' stay");
  t.ok(test.store.get(podOf('going')), 'the pod is unchanged');
});

t.test('a terminating cluster object without our finalizer is unchanged', async (t) => {
  const { store, leading } = await begin(t);
  store.put(clusterPath, deleted('x.example/y'));
  store.put(podPath('x'), podConfig({}, 'x'));
  await until(() => hasStatus(store, 'x'), 'the status of another object');
  await until(() => leading.caches.clusterConfigs.size === 1, 'the cached object');
  const writes = store.writes().filter(({ path }) => path.startsWith(clusterPath));
  t.same(writes, []);
});

t.test('if a leader dies before it releases the cluster object, the next one does', async (t) => {
  const first = await startLeading(t, {
    now: () => afterDeletion,
    step: (name) => {
      if (name === 'resources/before-release') {
        first.depose();
        throw new Error('killed');
      }
    },
  });
  first.store.put(clusterPath, deleted(ourFinalizer));
  const { running } = await run(t, first);
  await running;
  t.ok(first.store.get(clusterPath));
  const second = await startLeading(t, { over: first.store, now: () => afterDeletion });
  const { fireUntil } = await run(t, second);
  await fireUntil(() => first.store.get(clusterPath) === undefined, 'it may go');
});

t.test('conflicts and server errors are retried; a deleted object is no error', async (t) => {
  const { store, fireUntil, lines } = await begin(t);
  store.fault(/status$/, { status: 500, times: 2 });
  store.fault((request) => request.path === clusterPath && request.method === 'PATCH', {
    status: 409,
    times: 1,
  });
  store.fault(/gone\/status$/, { status: 404 });
  store.put(podPath('gone'), podConfig({}, 'gone'));
  store.put(podPath('z'), podConfig({}, 'z'));
  store.put(clusterPath, clusterConfig({}));
  await fireUntil(() => {
    const object = store.get(clusterPath) as Stored;
    return condition(object, 'Available') !== undefined && object.metadata?.finalizers?.length === 1;
  }, 'finalizer and status');
  await fireUntil(() => hasStatus(store, 'z'), 'the status of the other object');
  t.notOk(lines.some((line) => line.includes('"level":"error"')));
});

t.test('the log level of the leader follows the cluster object', async (t) => {
  const test = await startLeading(t, { configuration: { logLevel: 'warn' } });
  const { log, caches } = test.leading;
  const configuration = overlaid(
    test.leading.configuration,
    collectResources({ clusterConfigs: caches.clusterConfigs }),
  );
  const { fire } = await run(t, { ...test, leading: { ...test.leading, configuration } });
  const isLevel = (level: string) => (): boolean => {
    fire();
    return log.level === level;
  };
  await until(isLevel('warn'), "the configuration's level");
  test.store.put(clusterPath, clusterConfig({ logVerbosity: 'Trace' }));
  await until(isLevel('trace'), "the object's level");
  test.store.put(clusterPath, clusterConfig({}));
  await until(isLevel('warn'), "the configuration's level again");
});

t.test('a changed configuration updates the conditions', async (t) => {
  const test = await startLeading(t);
  let configuration = test.leading.configuration();
  const { fire } = await run(t, {
    ...test,
    leading: { ...test.leading, configuration: () => configuration },
  });
  test.store.put(podPath('web'), podConfig({ fallbackArchitecture: 's390x' }));
  const degraded = () => condition(test.store.get(podPath('web')) as Stored, 'Degraded');
  await until(() => degraded() === 'False AsWritten', 'the condition of a valid object');
  configuration = { ...configuration, schedulableArchitectures: ['amd64'] };
  await until(() => {
    fire();
    return degraded() === 'True ArchitecturesLeftOut';
  }, 'left out');
});

t.test('it ends if deposed before the caches are listed', async (t) => {
  const test = await startLeading(t);
  test.depose();
  await customResources(test.leading);
  t.same(test.store.writes(), []);
});
