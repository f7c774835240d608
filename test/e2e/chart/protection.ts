/** The chart's admission policy: only archwright and policy administrators change its annotation and gate. */
import type { Test } from 'tap';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { clientOf, patience, type Cluster } from '../cluster/harness.ts';
import { podOf } from '../cluster/control-plane/pods.ts';
import { untilRefused } from '../cluster/control-plane/rights.ts';
import { createHelm } from '../helm/release.ts';
import { chart } from './helm.ts';

export async function checkProtection(t: Test, cluster: Cluster): Promise<void> {
  const helm = createHelm('helm4', cluster);
  await helm.run('install archwright', chart, '--no-hooks');
  // The rights of the role `edit`, which a controller aggregates.
  await cluster.make('ClusterRole', 'pods', {
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'create', 'patch', 'update'] }],
  });
  const dev = await userWith(cluster, 'dev', 'pods');
  const administrator = await userWith(cluster, 'administrator', 'cluster-admin');
  t.teardown(() => {
    dev.close();
    administrator.close();
  });
  const schedulingGates = [{ name: 'arch.example/scheduling-gate' }];
  const annotations = { 'arch.example/decision': '{"v":1}', 'arch.example/summary': 'placed' };
  await cluster.create(podOf('protected', 'registry.example/app:1', { schedulingGates }, { annotations }));
  const path = '/api/v1/namespaces/default/pods/protected';
  const patch = (who: KubeClient, body: object): Promise<unknown> =>
    who.patch(path, { type: 'merge', body }, { signal: patience() });
  const forge = (version: number): object => ({
    metadata: { annotations: { 'arch.example/decision': `{"v":${version}}` } },
  });
  const open = { spec: { schedulingGates: [] } };
  // A policy is enforced a moment after it was created.
  await t.rejects(
    untilRefused((tries) => patch(dev, forge(tries + 2))),
    /only archwright may change the annotation/,
  );
  await t.rejects(
    patch(dev, { metadata: { annotations: null } }),
    /only archwright may change the annotation/,
  );
  await t.rejects(
    patch(dev, { metadata: { annotations: { 'arch.example/summary': 'pending' } } }),
    /only archwright may change the annotation/,
  );
  await t.rejects(patch(dev, open), /only archwright may add or remove the scheduling gate/);
  await t.resolves(patch(administrator, forge(100)), 'an administrator could delete the policy anyway');
  await t.resolves(patch(dev, { metadata: { labels: { a: 'b' } } }), 'other fields may change');
  await t.resolves(patch(cluster.client, open), 'an administrator can ungate a pod');
  await helm.run('uninstall archwright --no-hooks');
  await cluster.delete(path);
}

/** A user with a role in the whole cluster, and in no exempt group. */
async function userWith(cluster: Cluster, name: string, role: string): Promise<KubeClient> {
  await cluster.make('ClusterRoleBinding', name, {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', name }],
  });
  return clientOf(await cluster.identities.kubeconfig({ cn: name, group: 'devs' }, cluster.server));
}
