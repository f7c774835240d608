/** The chart on a real control plane: installing, upgrading, rolling back and leaving with both versions of Helm. */
import t from 'tap';
import { paths } from '../../../src/kube/api/paths.ts';
import { startCluster } from '../cluster/harness.ts';
import { differencesFrom, listEverything } from '../cluster/listing.ts';
import { createHelm } from '../helm/release.ts';
import { helms } from '../programs/helm.ts';
import { chart } from './helm.ts';
import { applyWebhooks, webhooksOf, type Rendered } from './rendered.ts';

const wait = '--wait --timeout 3m';

void t.test('the chart on a real API server', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

  for (const name of helms) {
    await t.test(`${name}: install, upgrade, roll back, uninstall`, async (t) => {
      const helm = createHelm(name, cluster);
      const before = await listEverything(cluster);
      await helm.run('install archwright', chart, wait);
      // As the controller does: its webhooks survive what Helm does.
      await applyWebhooks(cluster);
      const webhooks = await webhooksOf(cluster);
      t.equal(webhooks.length, 4);
      const set = 'webhook.replicas=3,commonAnnotations.a=b,preferredArchitecture=arm64';
      await helm.run('upgrade archwright', chart, wait, '--set', set);
      t.same(await webhooksOf(cluster), webhooks, 'an upgrade does not change the webhooks');
      const map = await cluster.get<Rendered>(paths.configMaps('archwright', 'archwright'));
      t.match(map.data?.['archwright.toml'], /preferredArchitecture = "arm64"/);
      await helm.run('rollback archwright 1', wait);
      t.same(await webhooksOf(cluster), webhooks, 'a rollback does not change them either');
      await helm.run('uninstall archwright', wait);
      t.same(await differencesFrom(cluster, before), [], 'everything is as it was');
    });
  }
});
