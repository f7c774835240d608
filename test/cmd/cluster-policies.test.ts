import t from 'tap';
import { follow } from './following.ts';

const leases = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases';

t.test('pods are gated only while a controller leads', async (t) => {
  const { store, policies } = await follow(t, { configuration: { fallbackArchitecture: 'amd64' } });
  const onUnknown = (): string =>
    policies.policyOf({ namespace: 'shop', namespaceLabels: {}, labels: {} }).onUnknownImage;
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
