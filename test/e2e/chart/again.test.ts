/**
 * Applied again, nothing changes: whatever a field is filled in with by the API server would be a difference for ever, for kubectl
 * and for who compares as it does. A release of Helm 3 goes on with Helm 4, and
 * a second one is refused.
 */
import { join } from 'node:path';
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { kubernetes, kubernetesPrograms } from '../programs/kubernetes.ts';
import { define } from '../cluster/definitions.ts';
import { patience, startCluster } from '../cluster/harness.ts';
import { createKubectl } from '../helm/kubectl.ts';
import { foreignDefinitions } from '../programs/definitions.ts';
import { type HelmName } from '../programs/helm.ts';
import { chart, render, runHelm } from './helm.ts';
import { withWebhooks, type Rendered } from './rendered.ts';
import { refusesSecond } from './second-release.ts';
import { settled, snapshot } from './snapshot.ts';
import { valueSets } from './value-sets.ts';

void t.test('applied again', async (t) => {
  const cluster = await startCluster({ apiServerOnly: kubernetes });
  t.teardown(() => cluster.stop());
  const { client } = cluster;
  await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

  await t.test('a release of Helm 3 goes on with Helm 4, on either side', async (t) => {
    const before = await snapshot(client);
    const run = (helm: HelmName, ...args: readonly string[]): void => {
      const all = [...args, '--no-hooks', '--namespace', 'archwright'];
      const { code, out, err } = runHelm(helm, all, { kubeconfig: cluster.kubeconfig });
      t.equal(code, 0, `${helm} ${args.join(' ')}: ${out}${err}`);
    };
    const get = <T>(path: string): Promise<T> => client.get<T>(path, { signal: patience() });
    const webhooksPath = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
    const webhooks = async (): Promise<unknown> =>
      (await get<{ readonly webhooks: unknown }>(webhooksPath)).webhooks;
    const replicas = async (): Promise<unknown> =>
      (
        await get<{ readonly spec: { readonly replicas: number } }>(
          '/apis/apps/v1/namespaces/archwright/deployments/archwright-webhook',
        )
      ).spec.replicas;

    run('helm3', 'install', 'archwright', chart);
    const map = await get<Rendered>('/api/v1/namespaces/archwright/configmaps/archwright');
    await client.patch(
      webhooksPath,
      { type: 'apply', body: withWebhooks(map), fieldManager: 'archwright-controller', force: true },
      { signal: patience() },
    );
    const written = await webhooks();
    run('helm4', 'upgrade', 'archwright', chart, '--set', 'webhook.replicas=3');
    t.equal(await replicas(), 3);
    const server = ['--server-side=true', '--force-conflicts'];
    run(
      'helm4',
      'upgrade',
      'archwright',
      chart,
      '--set',
      'webhook.replicas=4,webhook.hostNetwork=true',
      ...server,
    );
    t.equal(await replicas(), 4);
    run('helm4', 'upgrade', 'archwright', chart, '--reset-values', ...server);
    t.equal(await replicas(), 2, 'what is not set any more is gone');
    t.same(await webhooks(), written, 'and nothing of the controller is');
    run('helm4', 'uninstall', 'archwright');
    t.same(await settled(client, before), before);
  });

  await t.test('a second release is refused', async (t) => {
    await refusesSecond(t, cluster);
  });

  await t.test('by kubectl, everything that the chart renders stays as it is', async (t) => {
    for (const text of foreignDefinitions()) await define(cluster, text);
    const kubectl = createKubectl(
      kubernetesPrograms(['kubectl']).kubectl,
      cluster.kubeconfig,
      join(cluster.directory, 'kubectl'),
    );
    const sets = valueSets();
    for (const name of ['everything', 'cert-manager']) {
      const text = render('helm4', sets[name], ['--no-hooks']);
      await t.resolves(kubectl(['apply', '-f', '-'], text), name);
      const was = await versions(text);
      const said = await kubectl(['apply', '-f', '-'], text);
      const changed = said
        .trim()
        .split('\n')
        // Its selector is always replaced, by itself.
        .filter((line) => !/ unchanged$|^poddisruptionbudget\./.test(line));
      t.same(changed, [], name);
      t.same(await versions(text), was, name);
      await kubectl(['delete', '--ignore-not-found', '-f', '-'], text);
    }

    async function versions(text: string): Promise<Readonly<Record<string, unknown>>> {
      const { items } = JSON.parse(await kubectl(['get', '-f', '-', '-o', 'json'], text)) as {
        readonly items: readonly KubeObject[];
      };
      t.ok(items.length > 20);
      return Object.fromEntries(
        items.map(({ kind, metadata }) => [
          `${kind} ${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`,
          // The status of a definition comes by and by.
          kind === 'CustomResourceDefinition' ? metadata?.generation : metadata?.resourceVersion,
        ]),
      );
    }
  });
});
