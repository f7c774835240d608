import t from 'tap';
import { followPolicies } from '../../cmd/cluster-policies.ts';
import { createKubeClient } from '../../src/kube/client.ts';
import { defaultConfiguration } from '../../src/policy/configuration.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { startKubeStore } from '../support/kube-store.ts';

const leases = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases';

t.test('pods are gated only while a controller leads', async (t) => {
  const store = await startKubeStore();
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  const configuration = { ...defaultConfiguration(), namespace: 'archwright', fallbackArchitecture: 'amd64' };
  const followed = followPolicies({
    configuration: {
      current: () => configuration,
      onChange: () => undefined,
      refresh: () => Promise.resolve(),
      close: () => Promise.resolve(),
    },
    kubernetes: { access: store.access, client, podNamespace: undefined },
    log: createLog({ level: 'silent' }),
    metrics: createMetrics(),
  });
  t.teardown(async () => {
    followed.close();
    client.close();
    await store.close();
  });
  await followed.ready(AbortSignal.timeout(10_000));
  const onUnknown = (): string =>
    followed.policies.policyOf({ namespace: 'shop', namespaceLabels: {}, labels: {} }).onUnknownImage;
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
