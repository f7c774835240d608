/** Custom resources as a part that runs in a cluster follows them: by watches, with the log. */
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { clusterConfig, podConfig } from '../policy/resources/objects.ts';
import type { KubeStore } from '../support/kube-store.ts';
import { follow } from './following.ts';

const group = '/apis/arch.example/v1alpha1';
const clusterPath = `${group}/clusterpodplacementconfigs/cluster`;
const podPath = `${group}/namespaces/shop/podplacementconfigs/web`;
const shop = {
  namespace: 'shop',
  namespaceLabels: { 'kubernetes.io/metadata.name': 'shop' },
  labels: { app: 'web' },
};

async function followShop(t: Test, prepare: (store: KubeStore) => void = () => undefined) {
  const following = await follow(t, { prepare });
  return { ...following, policyOf: () => following.policies.policyOf(shop) };
}

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error('not in time');
    await pause(2);
  }
}

void t.test('what is there at the start, and what comes and goes', async (t) => {
  const { store, log, policyOf } = await followShop(t, (prepared) => {
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
  await until(() => policyOf().fallbackArchitecture === 'arm64');
  store.remove(clusterPath);
  await until(() => policyOf().fallbackArchitecture === undefined);
  t.equal(log.level, 'info');
});

void t.test('without the definitions, or the right to read them, it is ready and quiet', async (t) => {
  for (const status of [404, 403]) {
    const { lines, policyOf } = await followShop(t, (prepared) => {
      prepared.fault(/placementconfigs/, { status, message: 'not here' });
    });
    t.equal(policyOf().onUnknownImage, 'allow');
    const told = lines.filter((line) => line.includes('placementconfigs'));
    t.equal(told.length, status === 403 ? 2 : 0, 'a missing right is told once for each kind');
  }
});
