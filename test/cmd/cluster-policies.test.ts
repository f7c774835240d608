/** Policies as a part that runs in a cluster follows them: custom resources and the Lease, by watches. */
import t, { type Test } from 'tap';
import { followPolicies } from '../../cmd/wiring/cluster-policies.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { captureLog } from '../support/captured.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { clusterConfig, podConfig } from '../policy/resources/objects.ts';
import { startKubeStore, type KubeStore } from '../support/kube-store.ts';

const shop = {
  namespace: 'shop',
  namespaceLabels: { 'kubernetes.io/metadata.name': 'shop' },
  labels: { app: 'web' },
};

async function follow(
  t: Test,
  settings: Partial<Configuration> = {},
  prepare: (store: KubeStore) => void = () => undefined,
  fleet?: { isAvailable: () => boolean },
) {
  const store = await startKubeStore();
  prepare(store);
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  const { log, lines } = captureLog();
  const configuration = { ...defaultConfiguration(), namespace: 'archwright', ...settings };
  const followed = followPolicies({
    configuration: {
      current: () => configuration,
      onChange: () => undefined,
      refresh: () => Promise.resolve(),
      close: () => Promise.resolve(),
    },
    kubernetes: { access: store.access, client, podNamespace: undefined },
    fleet,
    log,
    metrics: createMetrics(),
  });
  t.teardown(async () => {
    followed.close();
    client.close();
    await store.close();
  });
  await followed.ready(AbortSignal.timeout(10_000));
  return { store, log, lines, policyOf: () => followed.policies.policyOf(shop) };
}

const leases = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases';

t.test('pods are gated only while a controller leads', async (t) => {
  const { store, policyOf } = await follow(t, { fallbackArchitecture: 'amd64' });
  const onUnknown = (): string => policyOf().onUnknownImage;
  const hold = (holderIdentity: string): void => {
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    store.put(`${leases}/archwright-controller`, {
      spec: { holderIdentity, leaseDurationSeconds: 60, renewTime },
    });
  };
  t.equal(onUnknown(), 'fallback', 'nobody leads yet');
  for (const [holder, expected] of [
    ['pod-a_1', 'gate'],
    ['', 'fallback'],
    ['pod-b_1', 'gate'],
    ['archwright-clean/1', 'fallback'],
    ['pod-b_1', 'gate'],
  ] as const) {
    hold(holder);
    await store.until(() => onUnknown() === expected, `${expected} with the holder ${holder}`);
    t.equal(onUnknown(), expected, `with the holder ${holder}`);
  }
  store.remove(`${leases}/archwright-controller`);
  await store.until(() => onUnknown() === 'fallback', 'fallback without a Lease');
});

t.test('pods are gated only while agents answer', async (t) => {
  let answers = true;
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: 'pod-a_1', leaseDurationSeconds: 60, renewTime };
  const prepare = (store: KubeStore): void => void store.put(`${leases}/archwright-controller`, { spec });
  for (const [next, settings] of [
    ['fallback', { fallbackArchitecture: 'amd64' }],
    ['allow', {}],
  ] as const) {
    const { policyOf } = await follow(t, settings, prepare, { isAvailable: () => answers });
    t.equal(policyOf().onUnknownImage, 'gate');
    answers = false;
    t.equal(policyOf().onUnknownImage, next, 'no agent answers');
    answers = true;
    t.equal(policyOf().onUnknownImage, 'gate', 'an agent answers again');
  }
});

const group = '/apis/arch.example/v1alpha1';
const clusterPath = `${group}/clusterpodplacementconfigs/cluster`;
const podPath = `${group}/namespaces/shop/podplacementconfigs/web`;
t.test('what is there at the start, and what comes and goes', async (t) => {
  const { store, log, policyOf } = await follow(t, {}, (prepared) => {
    prepared.put(clusterPath, clusterConfig({ fallbackArchitecture: 'arm64', logVerbosity: 'Debug' }));
    const spec = {
      labelSelector: { matchLabels: { app: 'web' } },
      fallbackArchitecture: 's390x',
      priority: 3,
    };
    prepared.put(podPath, podConfig(spec));
  });
  t.equal(policyOf().fallbackArchitecture, 's390x');
  t.equal(log.level, 'debug');
  store.remove(podPath);
  await store.until(() => policyOf().fallbackArchitecture === 'arm64', 'the cluster configuration');
  store.remove(clusterPath);
  await store.until(() => policyOf().fallbackArchitecture === undefined, 'no configuration');
  t.equal(log.level, 'info');
});

t.test('without the definitions, or the right to read them, it is ready and quiet', async (t) => {
  for (const status of [404, 403]) {
    const { lines, policyOf } = await follow(t, {}, (prepared) => {
      prepared.fault(/placementconfigs/, { status, message: 'not here' });
    });
    t.equal(policyOf().onUnknownImage, 'allow');
    const told = lines.filter((line) => line.includes('placementconfigs'));
    t.equal(told.length, status === 403 ? 2 : 0, 'a missing right is logged once for each kind');
  }
});

t.test('custom resources without end of one namespace are ignored; those of another one count', async (t) => {
  const values = Array.from({ length: 256 }, (_, index) => `value-${index}`.padEnd(63, 'x'));
  const matchExpressions = Array.from({ length: 32 }, () => ({ key: 'app', operator: 'NotIn', values }));
  const path = (namespace: string, name: string): string =>
    `/apis/arch.example/v1alpha1/namespaces/${namespace}/podplacementconfigs/${name}`;
  const { policyOf } = await follow(t, {}, (store) => {
    for (let index = 0; index < 40; index += 1)
      store.put(path('attacker', `large-${index}`), { spec: { labelSelector: { matchExpressions } } });
    store.put(path('shop', 'mine'), {
      spec: { fallbackArchitecture: 'arm64', labelSelector: { matchExpressions } },
    });
  });
  t.equal(policyOf().fallbackArchitecture, 'arm64');
});
