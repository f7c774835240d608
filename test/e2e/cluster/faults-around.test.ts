/** Dependencies are absent: the API server, all agents, the webhook, every controller. Pods still run. */
import t from 'tap';
import { startAgent, startWebhook } from './archwright/archwright.ts';
import { isGated, podOf } from './control-plane/pods.ts';
import { startFaultTest } from './faults/setup.ts';

function port(url: string): number {
  return Number(new URL(url).port);
}

void t.test('pods run after API server, agents, webhook or controllers were absent', async (t) => {
  const faultTest = await startFaultTest(t);
  const { cluster, images, tls } = faultTest;
  const plain = async (name: string, image: string): Promise<void> => {
    await cluster.create(podOf(name, image));
  };
  const bound = (name: string): Promise<string> =>
    faultTest.pods.until(`${name} is bound`, (pods) => pods.get(`default/${name}`)?.spec.nodeName, 60_000);

  // No controller leads, so no pod may be gated: it would not be ungated.
  await plain('no-leader', `${images.troubled.host}/absent:1`);
  await bound('no-leader');
  t.notOk(isGated(faultTest.pods.objects.get('default/no-leader')), 'not gated while no controller leads');

  const controller = await faultTest.controller();
  await faultTest.leader();
  const restarted = await faultTest.podGroup({ name: 'restarted', count: 60, withUnknown: true });
  await restarted.gated();
  await cluster.stopApiServer();
  restarted.release();
  await cluster.startApiServer();
  await restarted.end();

  await faultTest.agent.process.stop();
  const silent = images.push('no-answer', ['arm64']);
  for (let index = 0; index < 20; index += 1) await plain(`silent-${index}`, silent);
  await faultTest.pods.until('gated', (pods) => isGated(pods.get('default/silent-19')));
  for (let index = 0; index < 20; index += 1) await bound(`silent-${index}`);
  const silentPods = [...faultTest.pods.objects].filter(([key]) => key.startsWith('default/silent-'));
  t.equal(silentPods.length, 20);
  t.same(
    silentPods.filter(([, pod]) => isGated(pod) || !pod.spec.nodeName).map(([key]) => key),
    [],
    'no agent: after maxGateDuration every pod has a node and no gate',
  );

  await startAgent(cluster, {
    tls,
    name: 'agent-again',
    settings: images.settings,
    port: port(faultTest.agent.url),
  });
  await faultTest.placesPods({ name: 'again', count: 20 });

  await faultTest.webhook.process.stop();
  await plain('no-webhook', images.push('no-webhook', ['arm64']));
  await bound('no-webhook');
  const unseen = faultTest.pods.objects.get('default/no-webhook');
  t.ok(unseen?.spec.nodeName, 'no webhook: the pod runs, on any node');
  t.notOk(isGated(unseen));
  await startWebhook(cluster, {
    tls,
    name: 'webhook-again',
    port: port(faultTest.webhook.url),
    settings: {
      agents: faultTest.agent.url,
      'agent-tls-dir': tls.webhookClient,
      'on-unknown-image': 'gate',
    },
  });
  await faultTest.placesPods({ name: 'back', count: 20 });

  // The last controller stops while pods are gated; clean ungates them.
  const left = await faultTest.podGroup({ name: 'left', count: 10 });
  await left.gated();
  await controller.process.stop();
  await faultTest.clean();
  t.equal([...faultTest.pods.objects.values()].filter(isGated).length, 0, 'clean has opened every gate');
  await faultTest.pods.until('all run', (pods) =>
    left.names.every((name) => pods.get(`default/${name}`)?.spec.nodeName),
  );
});
