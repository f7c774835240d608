/** Reapplying the chart changes nothing; Helm 4 continues a Helm 3 release; a second release is refused. */
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { kubernetes } from '../programs/kubernetes.ts';
import { define, deleteKeptDefinitions } from '../cluster/control-plane/definitions.ts';
import { startCluster } from '../cluster/harness.ts';
import { differencesFrom, steadyListing } from '../cluster/control-plane/listing.ts';
import { changedIn, createHelm, kubectlOf } from '../helm/release.ts';
import { foreignDefinitions } from '../programs/definitions.ts';
import { helms } from '../programs/helm.ts';
import { chart, render } from './helm.ts';
import { applyWebhooks, webhooksOf } from './rendered.ts';
import { valueSets } from './value-sets.ts';
import { like } from '../../support/like.ts';

const definition = /CustomResourceDefinition "[a-z]+\.arch\.example"/;
const marker = /MutatingWebhookConfiguration "archwright-once-per-cluster"/;
const owner = /"meta\.helm\.sh\/release-name" must equal "second": current value is "archwright"/;
const place = /"meta\.helm\.sh\/release-namespace" must equal "default": current value is "archwright"/;
const foreign = /missing key "meta\.helm\.sh\/release-name"/;

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
    t.strictSame(await webhooksOf(cluster), webhooks, 'the webhooks of the controller stay');
    await four.run('upgrade archwright', chart, '--no-hooks --set webhook.replicas=3');
    t.equal(await replicas(), 3);
    const server = '--no-hooks --server-side=true --force-conflicts';
    await four.run('upgrade archwright', chart, '--set webhook.replicas=4,webhook.hostNetwork=true', server);
    t.equal(await replicas(), 4);
    await four.run('upgrade archwright', chart, '--reset-values', server);
    t.equal(await replicas(), 2, 'removed values have no effect');
    t.strictSame(await webhooksOf(cluster), webhooks, 'the webhooks of the controller stay');
    await four.run('uninstall archwright --no-hooks');
    await deleteKeptDefinitions(cluster);
    t.strictSame(await differencesFrom(cluster, before), []);
  });

  // It would act on the same pods. Helm names the existing release, or what plain manifests have created.
  await t.test('a second release is refused', async (t) => {
    const before = await steadyListing(cluster);
    const elsewhere = 'default';
    for (const name of helms) {
      const helm = createHelm(name, cluster);
      const refused = async (words: string, ...patterns: readonly RegExp[]): Promise<void> => {
        const { code, text } = await helm.tryRun(`install ${words} --no-hooks`);
        t.equal(code, 1, `${name}: ${words}`);
        for (const pattern of patterns) like(t, text, pattern, `${name}: ${words}`);
      };
      await helm.run('install archwright', chart, '--no-hooks');
      const first = await steadyListing(cluster);
      await refused(`second ${chart} --namespace ${elsewhere}`, definition, owner, place);
      await refused(`archwright ${chart} --namespace ${elsewhere}`, definition, place);
      await refused(`second ${chart}`, definition, owner);
      const sets = 'crds.install=false,fullnameOverride=other,rbac.create=false,protection.enabled=false';
      await refused(`second ${chart} --namespace ${elsewhere} --set ${sets}`, marker, owner, place);
      t.strictSame(await differencesFrom(cluster, first), [], `${name}: no object was created`);
      await helm.run('uninstall archwright --no-hooks');
      // A release in another namespace takes over the custom resources that were kept.
      const words = `--namespace ${elsewhere} --no-hooks`;
      await helm.run(`install second ${chart} --take-ownership --set crds.keep=false`, words);
      await helm.run('uninstall second', words);
      t.strictSame(await differencesFrom(cluster, before), [], `${name}: nothing is left`);

      const kubectl = kubectlOf(cluster);
      const plain = render('helm4', { crds: { keep: false } }, ['--no-hooks']);
      await kubectl(['apply', '-f', '-'], plain);
      // It also lists the custom resources. Otherwise an API server may need until the next resync, five minutes, to
      // delete their definitions: its finalizer lists before their storage is ready, and does not always retry.
      const applied = await steadyListing(cluster);
      for (const [value, object] of [
        ['true', definition],
        ['false', marker],
      ] as const)
        await refused(
          `second ${chart} --namespace ${elsewhere} --set crds.install=${value}`,
          object,
          foreign,
        );
      t.strictSame(await differencesFrom(cluster, applied), [], `${name}: no object was created`);
      await kubectl(['delete', '-f', '-', '--ignore-not-found'], plain);
    }
    t.strictSame(await differencesFrom(cluster, before), []);
  });

  await t.test('a second kubectl apply changes nothing', async (t) => {
    for (const text of foreignDefinitions()) await define(cluster, text);
    const kubectl = kubectlOf(cluster);
    const sets = valueSets();
    for (const name of ['everything', 'cert-manager']) {
      const text = render('helm4', sets[name], ['--no-hooks']);
      await t.resolves(kubectl(['apply', '-f', '-'], text), name);
      const was = await versions(text);
      t.strictSame(changedIn(await kubectl(['apply', '-f', '-'], text)), [], name);
      t.strictSame(await versions(text), was, name);
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
