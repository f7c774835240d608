/** The feature over an API server with a store: what it writes, when, and what it does not change. */
import t, { type Test } from 'tap';
import { customResources } from '../../../../src/controller/features/resources/resources.ts';
import type { ResourceStatus } from '../../../../src/controller/write/conditions.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import { collectResources } from '../../../../src/policy/resources/collection.ts';
import { overlaid } from '../../../../src/policy/resources/overlay.ts';
import { clusterConfig, podConfig } from '../../../policy/resources/objects.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { until } from '../../../support/until.ts';
import { leadThroughout, startLeader } from '../../leader.ts';

const clusterPath = '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster';
const podPath = (name: string): string =>
  `/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/${name}`;

async function start(t: Test, given: Partial<Configuration> = {}) {
  const clock = createFakeClock();
  const test = await startLeader(t, { configuration: given, clock });
  const { store, leader } = test;
  // As in a real leader, with the custom resource.
  const configuration = overlaid(
    leader.configuration,
    collectResources({ clusterConfigs: leader.caches.clusterConfigs }),
  );
  leadThroughout(t, customResources, { ...test, leader: { ...leader, configuration } });
  const condition = (path: string, type: string): string | undefined => {
    const object = store.get(path) as (KubeObject & { readonly status?: ResourceStatus }) | undefined;
    const found = object?.status?.conditions?.find((each) => each.type === type);
    return found && `${found.status} ${found.reason}`;
  };
  return {
    ...test,
    condition,
    /** Until this is true, the leader looks at its configuration. */
    later: (isTrue: () => boolean, what: string): Promise<void> =>
      until(async () => {
        await clock.advance(10_000);
        return isTrue();
      }, what),
  };
}

t.test('the cluster object gets a status, once, and no finalizer', async (t) => {
  const { store, leader, condition } = await start(t);
  store.put(clusterPath, clusterConfig({ preferredArchitecture: 'arm64' }));
  await until(() => condition(clusterPath, 'Available') === 'True InForce', 'a status');
  const { finalizers, uid, resourceVersion } = store.get(clusterPath)?.metadata ?? {};
  t.equal(finalizers, undefined);
  t.equal(condition(clusterPath, 'Degraded'), 'False AsWritten');
  const writes = store.writes().map(({ method, path, query }) => [method, path, query.get('fieldManager')]);
  t.strictSame(writes, [['PATCH', `${clusterPath}/status`, 'archwright-controller']]);
  const applied = JSON.parse(store.writes()[0]?.body ?? '') as KubeObject;
  t.ok(uid);
  t.equal(applied.metadata?.uid, uid, 'only this object');
  const cached = () => leader.caches.clusterConfigs.get('', 'cluster')?.metadata?.resourceVersion;
  await until(() => cached() === resourceVersion, 'the cached object');
  store.put(podPath('x'), podConfig({}, 'x'));
  await until(() => condition(podPath('x'), 'Available') !== undefined, 'the next object');
  t.equal(store.writes().length, 2, 'no write without a change');
});

t.test('the log level of the leader follows the cluster object', async (t) => {
  const { store, leader, later } = await start(t, { logLevel: 'warn' });
  const isLevel = (level: string) => (): boolean => leader.log.level === level;
  await later(isLevel('warn'), "the configuration's level");
  store.put(clusterPath, clusterConfig({ logVerbosity: 'Trace' }));
  await later(isLevel('trace'), "the object's level");
  store.put(clusterPath, clusterConfig({}));
  await later(isLevel('warn'), "the configuration's level again");
});

t.test('a changed configuration updates the conditions', async (t) => {
  const { store, configure, condition, later } = await start(t);
  store.put(podPath('web'), podConfig({ fallbackArchitecture: 's390x' }));
  const isDegraded = (text: string) => () => condition(podPath('web'), 'Degraded') === text;
  await until(isDegraded('False AsWritten'), 'the condition of a valid object');
  configure({ schedulableArchitectures: ['amd64'] });
  await later(isDegraded('True ArchitecturesLeftOut'), 'left out');
});
