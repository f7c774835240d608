/** Without agents, archwright runs in a namespace with Pod Security `restricted`, and delays no pods. */
import assert from 'node:assert/strict';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { steadyListing } from '../cluster/control-plane/listing.ts';
import { expectNothingForbidden, expectSameAsBefore } from './leaving.ts';
import { refusedAgents } from './failed-installs.ts';
import type { Followed } from './logs.ts';
import { untilWebhooksInForce } from './parts.ts';
import { podPath } from '../cluster/control-plane/pods.ts';
import { deletePods, isPlaced, podOf } from './pods.ts';
import { namespace, type Helm } from './release.ts';
import { step } from './report.ts';
import { onRealNode, type World } from './world.ts';

export async function restricted(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster, own, registries } = world;
  const of = (name: string): string => `${helm.name}, restricted: ${name}`;
  await cluster.merge(`/api/v1/namespaces/${namespace}`, {
    metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  });
  await refusedAgents(world, helm);
  const before = await steadyListing(cluster);
  const values = helm.values('restricted', {
    ...onRealNode(own),
    agent: { enabled: false },
    maxGateDuration: '5s',
    // Pods cannot resolve the registries' names here; an override needs no registry.
    imageOverrides: [{ match: `${registries.hosts.public}/**`, architectures: ['amd64'] }],
    registryCredentials: { [registries.hosts.team]: { user: 'team', secret: 'given "inline"' } },
  });
  await step(of('install, until it is ready and the check after it passed'), async () => {
    await helm.run('install', 'archwright', chart, values, '--wait', '--timeout', '2m');
    await untilWebhooksInForce(cluster);
  });
  await step(of('pods are placed, and ungated if their image stays unknown'), async () => {
    const pod = await cluster.create<Pod>(podOf({ name: 'known', images: [world.image('public/intel')] }));
    assert(isPlaced(pod));
    await cluster.create(podOf({ name: 'unknown', images: [world.image('plugin/multi')] }));
    for (const name of ['known', 'unknown'])
      await cluster.waitFor<Pod>(podPath(name), (now) => now?.spec.nodeName !== undefined);
    await deletePods(cluster, ['known', 'unknown']);
  });
  await step(of('uninstall'), () => helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m'));
  await expectSameAsBefore(world, helm, before);
  await step(of('no request was refused for a missing right'), () => expectNothingForbidden(logs));
}
