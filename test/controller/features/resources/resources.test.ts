/** The feature over an API server with a store: what it writes, when, and what it does not change. */
import t, { type Test } from 'tap';
import { customResources } from '../../../../src/controller/features/resources/resources.ts';
import type { ResourceStatus } from '../../../../src/controller/write/conditions.ts';
import { systemClock } from '../../../../src/async/clock.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { collectResources } from '../../../../src/policy/resources/collection.ts';
import { overlaid } from '../../../../src/policy/resources/overlay.ts';
import { clusterConfig, podConfig } from '../../../policy/resources/objects.ts';
import { leadThroughout, startLeader, type TestLeader, type TestLeaderOptions } from '../../leader.ts';
import type { KubeStore } from '../../../support/kube-store.ts';
import { until } from '../../../support/until.ts';

const clusterPath = '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster';
const podPath = (name: string, namespace = 'shop'): string =>
  `/apis/arch.example/v1alpha1/namespaces/${namespace}/podplacementconfigs/${name}`;

type Stored = KubeObject & { readonly status?: ResourceStatus };

/** Runs the feature. The test fires its timers. */
function run(t: Test, test: Pick<TestLeader, 'leader' | 'depose'>) {
  const timers = new Set<() => void>();
  const timer = (_ms: number, action: () => void) => {
    timers.add(action);
    return () => void timers.delete(action);
  };
  const leader = { ...test.leader, clock: { ...systemClock, timer } };
  leadThroughout(t, customResources, { ...test, leader });
  const fire = (): void => {
    for (const action of timers) {
      timers.delete(action);
      action();
    }
  };
  return { fire };
}

async function begin(t: Test, options: TestLeaderOptions = {}) {
  const test = await startLeader(t, options);
  return { ...test, ...run(t, test) };
}

function condition(object: Stored | undefined, type: string): string | undefined {
  const found = object?.status?.conditions?.find((each) => each.type === type);
  return found && `${found.status} ${found.reason}`;
}

const hasStatus = (store: KubeStore, name: string): boolean =>
  condition(store.get(podPath(name)) as Stored, 'Available') !== undefined;

t.test('the cluster object gets a status, once, and no finalizer', async (t) => {
  const { store, leader } = await begin(t);
  store.put(clusterPath, { ...clusterConfig({ preferredArchitecture: 'arm64' }) });
  const object = (): Stored | undefined => store.get(clusterPath) as Stored | undefined;
  await until(() => condition(object(), 'Available') === 'True InForce', 'a status');
  t.equal(object()?.metadata?.finalizers, undefined);
  t.equal(condition(object(), 'Degraded'), 'False AsWritten');
  const writes = store.writes().map(({ method, path, query }) => [method, path, query.get('fieldManager')]);
  t.strictSame(writes, [['PATCH', `${clusterPath}/status`, 'archwright-controller']]);
  const applied = JSON.parse(store.writes()[0]?.body ?? '') as KubeObject;
  t.equal(applied.metadata?.uid, object()?.metadata?.uid, 'only this object');
  t.ok(applied.metadata?.uid);
  const version = object()?.metadata?.resourceVersion;
  await until(
    () => leader.caches.clusterConfigs.get('', 'cluster')?.metadata?.resourceVersion === version,
    'the cached object',
  );
  store.put('/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/x', podConfig({}, 'x'));
  await until(() => hasStatus(store, 'x'), 'the next object');
  t.equal(store.writes().length, 2, 'no write without a change');
});

t.test('the log level of the leader follows the cluster object', async (t) => {
  const test = await startLeader(t, { configuration: { logLevel: 'warn' } });
  const { log, caches } = test.leader;
  const configuration = overlaid(
    test.leader.configuration,
    collectResources({ clusterConfigs: caches.clusterConfigs }),
  );
  const { fire } = run(t, { ...test, leader: { ...test.leader, configuration } });
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
  const test = await startLeader(t);
  let configuration = test.leader.configuration();
  const { fire } = run(t, {
    ...test,
    leader: { ...test.leader, configuration: () => configuration },
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
