/**
 * Without the label of the namespace, Pod Security refuses the agents. `helm test`, `status` and the
 * DaemonSet's events name the cause, and no new pod waits for an agent. With the label, everything works.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { isGated } from '../cluster/control-plane/pods.ts';
import { untilWebhooksInForce, untilReady } from '../helm/parts.ts';
import { deletePods, podOf, runningPod } from '../helm/pods.ts';
import { namespace } from '../helm/release.ts';
import { step } from '../helm/report.ts';
import type { World } from '../helm/world.ts';
import { expectEvents, expectExplain, expectReport, expectStatus } from './diagnostics.ts';
import { expectCode, type Readme } from './readme.ts';

/** No agent has answered for 30 s; a loaded machine needs more. */
const patienceMs = 120_000;
const cause = /no agent answers archwright-webhook[^]*violates PodSecurity/;
const unknown = /unavailable: no agents are known; see archwright status/;

export async function noAgents(world: World, readme: Readme): Promise<void> {
  const { cluster } = world;
  const of = (name: string): string => `no agents: ${name}`;
  // The check after the installation would wait for agents for four minutes. `helm test` is the same check.
  readme.writeValues({ startupCheck: { enabled: false, timeout: '20s' } });
  await step(of('helm install'), async () => {
    expectCode(await readme.run('helm install archwright'), 0);
    await untilWebhooksInForce(cluster);
  });
  const failing = step(of('helm test fails, names the cause, and leaves nothing behind'), async () => {
    const { code, text } = await readme.run('helm test');
    assert.notEqual(code, 0, text);
    assert.match(text, cause);
    const left = await readme.sh(`kubectl get pods,jobs --namespace ${namespace} --output name`);
    assert.doesNotMatch(expectCode(left, 0), /archwright-test|startup-check/, 'nothing stays');
  });
  const named = step(of('status and the events of the DaemonSet name the cause'), async () => {
    await expectStatus(readme, { code: 1, has: [cause, /^agents +0 of 1 ready/m] });
    const daemonSet = [namespace, 'DaemonSet', 'archwright-agent'] as const;
    await expectEvents(cluster, daemonSet, /^FailedCreate: .*violates PodSecurity/);
  });
  const open = step(
    of('new pods are not gated; explain and report say why they have no placement'),
    async () => {
      await createUngated(world, 'alone');
      await runningPod(cluster, 'alone');
      const lacks = [/the registry cannot be reached/, /created again +gated/];
      const has = [/decided before: allowed-unknown/, /created again +allowed-unknown/, unknown];
      await expectExplain(readme, ['default', 'pod/alone'], { code: 3, has, lacks });
      await expectReport(readme, { code: 1, has: [/Pod\/alone +1 .* unknown +.*no agents are known/] });
      await deletePods(cluster, ['alone']);
    },
  );
  // Waits for all: none is under way after a failure of another.
  const ended = await Promise.allSettled([failing, named, open]);
  for (const each of ended) if (each.status === 'rejected') throw each.reason;

  await step(of('the namespace is labeled: agents start, and everything works'), async () => {
    // `helm install --create-namespace` has made it.
    assert.match(expectCode(await readme.run('kubectl create namespace'), 1), /already exists/);
    expectCode(await readme.run('kubectl label namespace'), 0);
    // The DaemonSet controller retries with a growing back-off.
    expectCode(await readme.sh(`kubectl -n ${namespace} rollout restart daemonset archwright-agent`), 0);
    await untilReady(cluster);
    expectCode(await readme.run('helm test'), 0);
    await expectStatus(readme, { code: 0, has: [/^agents +1 of 1 ready/m] });
  });
  await step(of('uninstall'), async () => {
    expectCode(await readme.run('helm uninstall'), 0);
    expectCode(await readme.run('archwright clean'), 0);
  });
}

/** Creates the pod as soon as a dry run is not gated. */
async function createUngated({ cluster, image }: World, name: string): Promise<void> {
  const pod = podOf({ name, images: [image('plugin/multi')] });
  const end = performance.now() + patienceMs;
  while (isGated(await cluster.post<Pod>('/api/v1/namespaces/default/pods', pod, { dryRun: 'All' }))) {
    assert(performance.now() < end, 'pods are gated, and no agent answers');
    await pause(500);
  }
  await cluster.create(pod);
}
