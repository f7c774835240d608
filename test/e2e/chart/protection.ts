/** The admission policy of the chart: our annotation and our gate change only by archwright, and by whoever could take the policy away. */
import type { Test } from 'tap';
import { kubeconfigAccess } from '../../../src/kube/api/access.ts';
import { createKubeClient, type KubeClient } from '../../../src/kube/api/client.ts';
import { patience, type Cluster } from '../cluster/harness.ts';
import { chart, runHelm } from './helm.ts';

export async function protects(t: Test, cluster: Cluster): Promise<void> {
  const helm = (...args: readonly string[]): void => {
    const all = [...args, '--no-hooks', '--namespace', 'archwright'];
    const { code, out, err } = runHelm('helm4', all, { kubeconfig: cluster.kubeconfig });
    t.equal(code, 0, `${args.join(' ')}: ${out}${err}`);
  };
  helm('install', 'archwright', chart);
  // As the role `edit` may, which controllers put together.
  await cluster.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'pods' },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'create', 'patch', 'update'] }],
  });
  const dev = await somebody(cluster, 'dev', 'pods');
  const administrator = await somebody(cluster, 'administrator', 'cluster-admin');
  t.teardown(() => {
    dev.close();
    administrator.close();
  });
  const metadata = { name: 'protected', annotations: { 'arch.example/decision': '{"v":1}' } };
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: {
      schedulingGates: [{ name: 'arch.example/scheduling-gate' }],
      containers: [{ name: 'app', image: 'registry.example/app:1' }],
    },
  });
  const path = '/api/v1/namespaces/default/pods/protected';
  const patch = (who: KubeClient, body: object): Promise<unknown> =>
    who.patch(path, { type: 'merge', body }, { signal: patience() });
  const forge = (version: number): object => ({
    metadata: { annotations: { 'arch.example/decision': `{"v":${version}}` } },
  });
  const open = { spec: { schedulingGates: [] } };
  // Policies are in force a moment after they were created.
  await t.rejects(
    untilRefused((tries) => patch(dev, forge(tries + 2))),
    /written by archwright only/,
  );
  await t.rejects(patch(dev, { metadata: { annotations: null } }), /written by archwright only/);
  await t.rejects(patch(dev, open), /taken away by archwright only/);
  await t.resolves(patch(administrator, forge(100)), 'who could take the policy away need not');
  await t.resolves(patch(dev, { metadata: { labels: { a: 'b' } } }), 'anything else is theirs');
  await t.resolves(patch(cluster.client, open), 'the way out for an administrator');
  helm('uninstall', 'archwright');
  await cluster.client.delete(path, { signal: patience() });
}

/** Somebody with a role in the whole cluster, and in no group that is exempt. */
async function somebody(cluster: Cluster, name: string, role: string): Promise<KubeClient> {
  await cluster.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', name }],
  });
  const kubeconfig = await cluster.identities.kubeconfig({ cn: name, group: 'devs' }, cluster.server);
  const access = await kubeconfigAccess({ path: kubeconfig });
  if (!access) throw new TypeError('no access by a kubeconfig that was just written');
  return createKubeClient({ access, userAgent: 'archwright-e2e' });
}

/** @throws what refused it at last */
async function untilRefused(change: (tries: number) => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    await change(tries);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
