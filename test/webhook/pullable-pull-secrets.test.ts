import { test } from 'tap';
import type { Secret } from '../../src/kube/api/objects.ts';
import { denied, type Answer } from '../fleet/fleet-setup.ts';
import { factsOf, failureOf } from '../support/facts.ts';
import { able, budgetMs, poor, setup } from './pullable-setup.ts';
import { until } from '../support/until.ts';
import { clusterOf } from './support.ts';

const regcred: Secret = {
  metadata: { namespace: 'shop', name: 'regcred' },
  type: 'kubernetes.io/dockerconfigjson',
  data: {
    '.dockerconfigjson': Buffer.from(
      JSON.stringify({ auths: { 'registry.example': { username: 'robot', password: 'let-me-in' } } }),
    ).toString('base64'),
  },
};

const bySecret: Answer = (body) => ({
  results: body.images.map((each) =>
    body.auths
      ? factsOf(each.image, { credentialSource: 'pull-secret' })
      : failureOf(each.image, 'unauthorized'),
  ),
});

test('pull secrets decide which nodes are excluded', async (t) => {
  const imagePullSecrets = [{ name: 'regcred' }];
  const secrets = { 'shop/regcred': regcred };
  await t.test('a node that can pull with the pull secret is not excluded', async (t) => {
    const { lands } = await setup(t, [able, { ...poor, facts: bySecret }], {
      cluster: clusterOf({ secrets }),
    });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
    t.strictSame(await lands(), ['node-able', 'node-new'], 'excluded without it');
  });
  await t.test('an image that needed the pull secret is looked up only with it', async (t) => {
    const scripts = [able, poor].map((script) => ({ ...script, facts: bySecret }));
    const { lands, agents } = await setup(t, scripts, { cluster: clusterOf({ secrets }) });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
    for (const { requests } of agents) t.ok(requests.every(({ auths }) => auths !== undefined));
  });
  await t.test('a node that cannot reach the registry is excluded despite the pull secret', async (t) => {
    const scripts = [
      { ...able, facts: bySecret },
      { ...poor, facts: denied('unavailable') },
    ];
    const { lands } = await setup(t, scripts, { cluster: clusterOf({ secrets }) });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-new']);
  });
  await t.test('an unreadable pull secret excludes no node', async (t) => {
    let isRead = false;
    const hanging = (): Promise<never> => {
      isRead = true;
      return new Promise(() => undefined);
    };
    const { lands, clock } = await setup(t, [able, poor], { cluster: clusterOf({ secret: hanging }) });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    const landing = lands({ imagePullSecrets });
    await until(() => isRead, 'the Secret is read');
    await clock.advance(budgetMs);
    t.strictSame(await landing, ['node-able', 'node-poor', 'node-new']);
  });
  await t.test('a malformed pull secret excludes no node', async (t) => {
    const broken = { ...regcred, data: { '.dockerconfigjson': Buffer.from('{').toString('base64') } };
    const cluster = clusterOf({ secrets: { 'shop/regcred': broken } });
    const { lands } = await setup(t, [able, poor], { cluster });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
  });
});
