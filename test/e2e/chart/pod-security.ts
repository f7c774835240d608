/** Pod Security `restricted` admits webhook, controller and Jobs, but not the agent, which reads files of its node. */
import type { Test } from 'tap';
import { type Cluster } from '../cluster/harness.ts';
import { render } from './helm.ts';
import { dryRun, objectsOf, priorityClasses } from './rendered.ts';

export async function heldToPodSecurity(t: Test, cluster: Cluster): Promise<void> {
  await cluster.createNamespace('restricted', { 'pod-security.kubernetes.io/enforce': 'restricted' });
  for (const account of ['webhook', 'controller', 'clean', 'startup-check', 'agent']) {
    await cluster.create({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: `archwright-${account}`, namespace: 'restricted' },
    });
  }
  const priorityClass = { metadata: { name: 'archwright' }, value: 1 };
  await cluster.post(priorityClasses, priorityClass);
  let seen = 0;
  for (const object of objectsOf(render('helm4'))) {
    const template =
      object.kind === 'Pod' ? { metadata: {}, spec: object.spec as object } : object.spec?.template;
    if (!template?.spec || !('containers' in template.spec)) continue;
    const name = object.metadata?.name ?? '';
    const pod = {
      ...template,
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...template.metadata, name: `x-${name}`, namespace: 'restricted' },
    };
    if (name === 'archwright-agent') await t.rejects(dryRun(cluster, pod), /violates PodSecurity/);
    else await t.resolves(dryRun(cluster, pod), name);
    seen++;
  }
  t.equal(seen, 6, 'webhook, controller, agent, two Jobs and the pod of helm test');
  await cluster.delete(`${priorityClasses}/archwright`);
}
