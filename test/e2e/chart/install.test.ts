/** The chart on a real control plane: installing, upgrading, rolling back and leaving with both Helms. */
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { patience, startCluster, type Cluster } from '../cluster/harness.ts';
import { waitFor } from '../cluster/watch.ts';
import { helms, type HelmName } from '../programs/helm.ts';
import { chart, runHelm } from './helm.ts';
import { withWebhooks, type Rendered } from './rendered.ts';
import { settled, snapshot } from './snapshot.ts';

function helmIn(
  cluster: Cluster,
  helm: HelmName,
  ...args: readonly string[]
): { readonly code: number | null; readonly text: string } {
  const { code, out, err } = runHelm(helm, [...args, '--namespace', 'archwright'], {
    kubeconfig: cluster.kubeconfig,
  });
  return { code, text: out + err };
}

void t.test('the chart on a real API server', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } });
  t.teardown(() => cluster.stop());
  const { client } = cluster;
  await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

  for (const helm of helms) {
    await t.test(`${helm}: install, upgrade, roll back, uninstall`, async (t) => {
      const before = await snapshot(client);
      const run = (...args: string[]): void => {
        const { code, text } = helmIn(cluster, helm, ...args);
        t.equal(code, 0, `${args.join(' ')}: ${text}`);
      };
      run('install', 'archwright', chart, '--wait', '--timeout', '3m');
      // What the controller does: it owns the webhooks, and they survive what Helm does.
      const map = await client.get<Rendered>('/api/v1/namespaces/archwright/configmaps/archwright', {
        signal: patience(),
      });
      const configuration = withWebhooks(map);
      await client.patch(
        webhookPath,
        { type: 'apply', body: configuration, fieldManager: 'archwright-controller', force: true },
        { signal: patience() },
      );
      const webhooks = async (): Promise<number> =>
        (await client.get<{ readonly webhooks?: readonly unknown[] }>(webhookPath, { signal: patience() }))
          .webhooks?.length ?? 0;
      const count = await webhooks();
      t.equal(count, 4);
      run(
        'upgrade',
        'archwright',
        chart,
        '--wait',
        '--timeout',
        '3m',
        '--set',
        'webhook.replicas=3,commonAnnotations.a=b,preferredArchitecture=arm64',
      );
      t.equal(await webhooks(), count, 'an upgrade leaves the webhooks alone');
      const changed = await client.get<Rendered>('/api/v1/namespaces/archwright/configmaps/archwright', {
        signal: patience(),
      });
      t.match(changed.data?.['archwright.toml'], /preferredArchitecture = "arm64"/);
      run('rollback', 'archwright', '1', '--wait', '--timeout', '3m');
      t.equal(await webhooks(), count, 'so does a rollback');
      run('uninstall', 'archwright', '--wait', '--timeout', '3m');
      await waitFor<KubeObject>(
        client,
        '/api/v1/namespaces/archwright/services/archwright-webhook',
        (service) => service === undefined,
      );
      t.same(await settled(client, before), before, 'everything is as it was');
    });
  }
});

const webhookPath = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
