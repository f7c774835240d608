/** Reapplying the chart changes nothing; Helm 4 continues a Helm 3 release; a second release is refused. */
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { kubernetes } from '../programs/kubernetes.ts';
import { define, deleteKeptDefinitions } from '../cluster/control-plane/definitions.ts';
import { startCluster } from '../cluster/harness.ts';
import { differencesFrom, steadyListing } from '../cluster/control-plane/listing.ts';
import { changedIn, createHelm, kubectlOf } from '../helm/release.ts';
import { foreignDefinitions } from '../programs/definitions.ts';
import { chart, render } from './helm.ts';
import { applyWebhooks, webhooksOf } from './rendered.ts';
import { checkSecondRelease } from './second-release.ts';
import { valueSets } from './value-sets.ts';

void t.test('the chart can be applied repeatedly', async (t) => {
  const cluster = await startCluster({ apiServerOnly: kubernetes }, t);
  await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

  await t.test('Helm 4 upgrades a release of Helm 3, by client-side and server-side apply', async (t) => {
    const [three, four] = [createHelm('helm3', cluster), createHelm('helm4', cluster)];
    const before = await steadyListing(cluster);
    const replicas = async (): Promise<unknown> => {
      const path = '/apis/apps/v1/namespaces/archwright/deployments/archwright-webhook';
      return (await cluster.get<{ readonly spec: { readonly replicas: number } }>(path)).spec.replicas;
    };
    await three.run('install archwright', chart, '--no-hooks');
    await applyWebhooks(cluster);
    const webhooks = await webhooksOf(cluster);
    t.equal(webhooks.length, 4);
    await three.run('upgrade archwright', chart, '--no-hooks --set webhook.replicas=5');
    t.equal(await replicas(), 5);
    await three.run('rollback archwright 1 --no-hooks');
    t.equal(await replicas(), 2, 'a rollback');
    t.same(await webhooksOf(cluster), webhooks, 'the webhooks of the controller stay');
    await four.run('upgrade archwright', chart, '--no-hooks --set webhook.replicas=3');
    t.equal(await replicas(), 3);
    const server = '--no-hooks --server-side=true --force-conflicts';
    await four.run('upgrade archwright', chart, '--set webhook.replicas=4,webhook.hostNetwork=true', server);
    t.equal(await replicas(), 4);
    await four.run('upgrade archwright', chart, '--reset-values', server);
    t.equal(await replicas(), 2, 'removed values have no effect');
    t.same(await webhooksOf(cluster), webhooks, 'the webhooks of the controller stay');
    await four.run('uninstall archwright --no-hooks');
    await deleteKeptDefinitions(cluster);
    t.same(await differencesFrom(cluster, before), []);
  });

  await t.test('a second release is refused', async (t) => {
    await checkSecondRelease(t, cluster);
  });

  await t.test('a second kubectl apply changes nothing', async (t) => {
    for (const text of foreignDefinitions()) await define(cluster, text);
    const kubectl = kubectlOf(cluster);
    const sets = valueSets();
    for (const name of ['everything', 'cert-manager']) {
      const text = render('helm4', sets[name], ['--no-hooks']);
      await t.resolves(kubectl(['apply', '-f', '-'], text), name);
      const was = await versions(text);
      t.same(changedIn(await kubectl(['apply', '-f', '-'], text)), [], name);
      t.same(await versions(text), was, name);
    }

    async function versions(text: string): Promise<Readonly<Record<string, unknown>>> {
      const { items } = JSON.parse(await kubectl(['get', '-f', '-', '-o', 'json'], text)) as {
        readonly items: readonly KubeObject[];
      };
      t.ok(items.length > 20);
      return Object.fromEntries(
        items.map(({ kind, metadata }) => [
          `${kind} ${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`,
          kind === 'CustomResourceDefinition' ? metadata?.generation : metadata?.resourceVersion,
        ]),
      );
    }
  });
});
