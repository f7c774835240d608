/**
 * The rights of archwright's service accounts, as the chart grants and limits them: what a stolen token of
 * the controller cannot do, and what the controller still can.
 */
import type { Test } from 'tap';
import type { CallOptions, KubeClient } from '../../../src/kube/api/client.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { tokenOf } from '../cluster/archwright/accounts.ts';
import { untilChartGranted, untilRefused } from '../cluster/control-plane/rights.ts';
import { clientOf, patience, type Cluster } from '../cluster/harness.ts';
import { createHelm } from '../helm/release.ts';
import {
  dedicated,
  get,
  refusedByPolicies,
  node,
  pod,
  refusedByRoles,
  webhooks,
  controllerWrites,
} from './escalations.ts';
import { chart } from './helm.ts';

export async function checkOwnRights(t: Test, cluster: Cluster): Promise<void> {
  const helm = createHelm('helm4', cluster);
  const narrow = helm.values('own-rights.json', {
    rbac: { pullSecrets: 'namespaces', pullSecretNamespaces: ['default'] },
  });
  await helm.run('install archwright', chart, '--no-hooks', narrow);
  await createVictims(cluster);
  const controller = await clientOf(await tokenOf(cluster, 'archwright-controller'));
  t.teardown(() => controller.close());

  await untilChartGranted(cluster.client);
  await untilEnforced(controller);
  for (const [name, call] of [...refusedByPolicies, ...refusedByRoles])
    await refused(t, name, () => call(controller));
  for (const [name, call] of controllerWrites) await t.resolves(call(controller), name);

  await cluster.make('ClusterRoleBinding', 'by-mistake', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'archwright-controller', namespace: 'archwright' }],
  });
  await t.resolves(get('/api/v1/secrets')(controller), 'every right is granted');
  for (const [name, call] of refusedByPolicies)
    await refused(t, `with cluster-admin, ${name}`, () => call(controller));
  await cluster.delete('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/by-mistake');
  await cluster.delete('/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster');
  await helm.run('uninstall archwright --no-hooks');
  await cluster.delete(pod);
  await cluster.delete(node);
}

/** Objects to attack: another program's gated pod, a node, and objects that the controller may not read. */
async function createVictims(cluster: Cluster): Promise<void> {
  await cluster.make('Pod', 'gated', {
    metadata: { annotations: { 'x.example/kept': 'yes' } },
    spec: {
      schedulingGates: [{ name: 'arch.example/scheduling-gate' }, { name: 'x.example/theirs' }],
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      initContainers: [{ name: 'i', image: 'registry.example/init:1' }],
      containers: [{ name: 'c', image: 'registry.example/app:1' }],
    },
  });
  await cluster.make('Node', 'worker', {
    metadata: { labels: { 'kubernetes.io/arch': 'amd64' }, annotations: { 'x.example/kept': 'yes' } },
    spec: { taints: [dedicated] },
  });
  for (const [namespace, name] of [
    ['kube-system', 'bootstrap'],
    ['archwright', 'other'],
  ] as const)
    await cluster.make('Secret', `${namespace}/${name}`);
  await cluster.make('MutatingWebhookConfiguration', 'archwright-other');
  await cluster.make('ClusterPodPlacementConfig', 'cluster', { spec: { fallbackArchitecture: 'amd64' } });
}

/** Policies are enforced a moment after they are created. Dry runs show when each of them is. */
async function untilEnforced(controller: KubeClient): Promise<void> {
  const dryRun = (): CallOptions => ({ signal: patience(), query: { dryRun: 'All' } });
  const body = { metadata: { annotations: { 'x.example/y': 'z' } } };
  const foreign = {
    name: 'pods.arch.example',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { url: 'https://evil.example/' },
  };
  const configMaps = '/api/v1/namespaces/archwright/configmaps';
  for (const attempt of [
    () => controller.patch(pod, { type: 'merge', body }, dryRun()),
    () => controller.patch(node, { type: 'merge', body }, dryRun()),
    () => controller.patch(webhooks, { type: 'merge', body: { webhooks: [foreign] } }, dryRun()),
    () => controller.create(configMaps, { metadata: { name: 'archwright-evil' } }, dryRun()),
  ])
    await untilRefused(attempt).catch((error: unknown) => {
      if (!(error instanceof KubeError && error.message.includes('ValidatingAdmissionPolicy'))) throw error;
    });
}

async function refused(t: Test, name: string, call: () => Promise<unknown>): Promise<void> {
  const answer = await call().then(
    () => 'accepted',
    (error: unknown) => (error instanceof KubeError ? `${error.code}: ${error.message}` : String(error)),
  );
  // `invalid`: the field is immutable.
  t.match(answer, /^(forbidden|invalid): /u, `${name} is refused`);
}
