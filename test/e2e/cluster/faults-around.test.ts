/** What archwright stands on goes away: all agents, the webhook, every controller. Pods run all the same. */
import t from 'tap';
import { startAgent, startWebhook } from './archwright.ts';
import { isGated } from './faults/crowd.ts';
import { startScene } from './faults/scene.ts';

function port(url: string): number {
  return Number(new URL(url).port);
}

void t.test('agents, webhook and controllers go away', async (t) => {
  const scene = await startScene(t);
  const { cluster, images, tls } = scene;
  const plain = async (name: string, image: string): Promise<void> => {
    await cluster.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'app', image }] },
    });
  };
  const bound = (name: string): Promise<string> =>
    scene.pods.until(`${name} is bound`, (pods) => pods.get(`default/${name}`)?.spec.nodeName, 60_000);

  // No controller leads: nothing may be gated that nobody would let go.
  await plain('nobody-leads', `${images.troubled.host}/absent:1`);
  await bound('nobody-leads');
  t.notOk(isGated(scene.pods.objects.get('default/nobody-leads')), 'not gated while nobody leads');

  const controller = await scene.controller();
  await scene.leader();
  await scene.agent.process.stop();
  const silent = images.push('nobody-answers', ['arm64']);
  for (let index = 0; index < 20; index += 1) await plain(`silent-${index}`, silent);
  await scene.pods.until('gated', (pods) => isGated(pods.get('default/silent-19')));
  for (let index = 0; index < 20; index += 1) await bound(`silent-${index}`);
  const silentPods = [...scene.pods.objects].filter(([key]) => key.startsWith('default/silent-'));
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
    port: port(scene.agent.url),
  });
  const again = await scene.crowd({ name: 'again', count: 20 });
  await again.gated();
  again.release();
  await again.end();

  await scene.webhook.process.stop();
  await plain('no-webhook', images.push('no-webhook', ['arm64']));
  await bound('no-webhook');
  const unseen = scene.pods.objects.get('default/no-webhook');
  t.ok(unseen?.spec.nodeName, 'no webhook: the pod runs, wherever that is');
  t.notOk(isGated(unseen));
  await startWebhook(cluster, {
    tls,
    name: 'webhook-again',
    port: port(scene.webhook.url),
    settings: { agents: scene.agent.url, 'agent-tls-dir': tls.webhookClient, 'on-unknown-image': 'gate' },
  });
  const back = await scene.crowd({ name: 'back', count: 20 });
  await back.gated();
  back.release();
  await back.end();

  // The last controller goes while pods are gated; whoever comes next finishes, or clean does.
  const left = await scene.crowd({ name: 'left', count: 10 });
  await left.gated();
  await controller.process.stop();
  await scene.clean();
  t.equal([...scene.pods.objects.values()].filter(isGated).length, 0, 'clean has opened every gate');
  await scene.pods.until('all run', (pods) =>
    left.names.every((name) => pods.get(`default/${name}`)?.spec.nodeName),
  );
});
