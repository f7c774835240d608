/** archwright with the API server of the oldest supported Kubernetes, which calls the chart's webhooks. */
import t from 'tap';
import type { ResourceStatus } from '../../../src/controller/write/conditions.ts';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { termsOf } from '../../support/placement-input.ts';
import { clusterConfig } from '../../policy/resources/objects.ts';
import { oldestKubernetes } from '../programs/kubernetes.ts';
import {
  prepareArchwright,
  runArchwright,
  startAgent,
  startController,
  startWebhook,
} from '../cluster/archwright/archwright.ts';
import { installDefinitions } from '../cluster/control-plane/definitions.ts';
import { startCluster } from '../cluster/harness.ts';
import { startImages } from '../cluster/archwright/images.ts';
import { isGated, podOf, podPath } from '../cluster/control-plane/pods.ts';
import { hasCondition } from '../cluster/control-plane/watch.ts';
import { callWebhook } from './rendered.ts';

void t.test(`the program works with Kubernetes ${oldestKubernetes}`, async (t) => {
  const cluster = await startCluster({ apiServerOnly: oldestKubernetes }, t);
  await installDefinitions(cluster);
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const agent = await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } });
  const settings = { 'on-unknown-image': 'gate' };
  const controller = await startController(cluster, { tls, agents: [agent], settings });
  const webhook = await startWebhook(cluster, { tls, agents: [agent], settings });
  const both = images.push('both', ['amd64', 'arm64']);
  await callWebhook(cluster, { url: webhook.url, ca: tls.webhookCa }, both);

  const create = (name: string, image: string): Promise<Pod> => cluster.create<Pod>(podOf(name, image));
  const required = (pod: Pod | undefined): readonly string[] =>
    ((pod && termsOf(pod)) ?? []).flatMap(
      ({ matchExpressions = [] }) =>
        matchExpressions.find(({ key }) => key === keys.architectureLabel)?.values ?? [],
    );

  await t.test('a pod is placed when it is created', async (t) => {
    const pod = await create('placed', both);
    t.strictSame([...required(pod)].sort(), ['amd64', 'arm64']);
    t.notOk(isGated(pod));
  });

  await t.test('a pod whose registry is slow is gated, then decided', async (t) => {
    images.public.faults.add(/\/late\//u, { kind: 'delay', ms: 2000 });
    const pod = await create('late', images.push('late', ['arm64']));
    t.ok(isGated(pod));
    const open = await cluster.waitFor<Pod>(podPath('late'), (now) => !isGated(now));
    t.strictSame(required(open), ['arm64']);
  });

  await t.test('a custom resource applies', async (t) => {
    type Resource = KubeObject & { readonly status?: ResourceStatus };
    await cluster.create(clusterConfig({ preferredArchitecture: 'arm64' }));
    const path = '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster';
    t.ok(await cluster.waitFor<Resource>(path, (now) => hasCondition(now, 'Available')));
  });

  await t.test('clean removes everything', async (t) => {
    await controller.process.stop(10_000);
    const args = ['clean', `--kubeconfig=${cluster.kubeconfig}`, '--webhook-configuration=archwright'];
    const { code, output } = await runArchwright(cluster, args);
    t.equal(code, 0, output);
    const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
    t.notOk(await cluster.waitFor(path, (configuration) => configuration === undefined));
  });
});
