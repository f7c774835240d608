/** Policies in a cluster follow custom resources and the Lease, by watches. */
import t, { type Test } from 'tap';
import { followPolicies } from '../../../cmd/wiring/cluster-policies.ts';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { captureLog } from '../../support/captured.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { clusterConfig, podConfig } from '../../policy/resources/objects.ts';
import { connectedStore } from '../../kube/support.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { neverAborted } from '../../support/never-aborted.ts';

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
  const { store, client } = await connectedStore(t);
  prepare(store);
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
  t.teardown(() => followed.close());
  await followed.ready(neverAborted);
  return { store, log, lines, policyOf: () => followed.policies.policyOf(shop) };
}

const lease = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';

function hold(store: KubeStore, holderIdentity: string): void {
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  store.put(lease, { spec: { holderIdentity, leaseDurationSeconds: 60, renewTime } });
}

t.test('pods are gated only while a controller leads', async (t) => {
  const { store, policyOf } = await follow(t, { fallbackArchitecture: 'amd64' });
  const onUnknown = (): string => policyOf().onUnknownImage;

  t.equal(onUnknown(), 'fallback', 'no leader yet');
  for (const [holder, expected] of [
    ['pod-a_1', 'gate'],
    ['', 'fallback'],
    ['pod-b_1', 'gate'],
    ['archwright-clean/1', 'fallback'],
    ['pod-b_1', 'gate'],
  ] as const) {
    hold(store, holder);
    await store.until(() => onUnknown() === expected, `${expected} with the holder ${holder}`);
    t.equal(onUnknown(), expected, `with the holder ${holder}`);
  }
  store.remove(lease);
  await store.until(() => onUnknown() === 'fallback', 'fallback without a Lease');
});

t.test('pods are gated only while an agent responds', async (t) => {
  let answers = true;
  const prepare = (store: KubeStore): void => hold(store, 'pod-a_1');
  for (const [next, settings] of [
    ['fallback', { fallbackArchitecture: 'amd64' }],
    ['allow', {}],
  ] as const) {
    const { policyOf } = await follow(t, settings, prepare, { isAvailable: () => answers });
    t.equal(policyOf().onUnknownImage, 'gate');
    answers = false;
    t.equal(policyOf().onUnknownImage, next, 'no agent responds');
    answers = true;
    t.equal(policyOf().onUnknownImage, 'gate', 'an agent responds again');
  }
});

const group = '/apis/arch.example/v1alpha1';
const clusterPath = `${group}/clusterpodplacementconfigs/cluster`;
const podPath = `${group}/namespaces/shop/podplacementconfigs/web`;
t.test('policies follow existing, added and deleted custom resources', async (t) => {
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

t.test('it is ready without the definitions, or the permission to read them', async (t) => {
  for (const status of [404, 403]) {
    const { lines, policyOf } = await follow(t, {}, (prepared) => {
      prepared.fault(/placementconfigs/, { status, message: 'not here' });
    });
    t.equal(policyOf().onUnknownImage, 'allow');
    const warnings = lines.filter((line) => line.includes('placementconfigs'));
    t.equal(warnings.length, status === 403 ? 2 : 0, 'a missing permission is logged once per kind');
  }
});

t.test("excessive custom resources of one namespace are ignored; another namespace's count", async (t) => {
  const values = Array.from({ length: 256 }, (_, index) => `value-${index}`.padEnd(63, 'x'));
  const matchExpressions = Array.from({ length: 32 }, () => ({ key: 'app', operator: 'NotIn', values }));
  const labelSelector = { matchExpressions };
  const { policyOf } = await follow(t, {}, (store) => {
    for (let index = 0; index < 40; index += 1)
      store.put(`${group}/namespaces/attacker/podplacementconfigs/large-${index}`, {
        spec: { labelSelector },
      });
    store.put(podPath, { spec: { fallbackArchitecture: 'arm64', labelSelector } });
  });
  t.equal(policyOf().fallbackArchitecture, 'arm64');
});
