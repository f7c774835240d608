import { test } from 'tap';
import type { Secret } from '../../src/kube/api/objects.ts';
import { denied, type Answer } from '../fleet/fleet-setup.ts';
import { factsOf, failureOf } from '../fleet/support.ts';
import { able, poor, setup } from './pullable-setup.ts';
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

const bySecret: Answer = (asked) => ({
  results: asked.images.map((each) =>
    asked.auths
      ? factsOf(each.image, { credentialSource: 'pull-secret' })
      : failureOf(each.image, 'unauthorized'),
  ),
});

test('pull secrets', async (t) => {
  const imagePullSecrets = [{ name: 'regcred' }];
  const secrets = { 'shop/regcred': regcred };
  await t.test('a node that can pull with them is not left out', async (t) => {
    const { lands } = await setup(t, [able, { ...poor, facts: bySecret }], {
      cluster: clusterOf({ secrets }),
    });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
    t.strictSame(await lands(), ['node-able', 'node-new'], 'without them it is');
  });
  await t.test('an image that they opened is asked about with them only', async (t) => {
    const scripts = [able, poor].map((script) => ({ ...script, facts: bySecret }));
    const { lands, agents } = await setup(t, scripts, { cluster: clusterOf({ secrets }) });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
    t.strictSame(
      agents.map(({ asked }) => asked.map(({ auths }) => auths !== undefined)),
      [[true], [true]],
    );
  });
  await t.test('a node that cannot reach the registry is left out even so', async (t) => {
    const scripts = [
      { ...able, facts: bySecret },
      { ...poor, facts: denied('unavailable') },
    ];
    const { lands } = await setup(t, scripts, { cluster: clusterOf({ secrets }) });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-new']);
  });
  await t.test('that cannot be read leave nobody out', async (t) => {
    const cluster = clusterOf({ secret: () => new Promise(() => undefined) });
    const { lands } = await setup(t, [able, poor], { cluster, budgetMs: 500 });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
  });
  await t.test('that do not match change nothing', async (t) => {
    const other = {
      ...regcred,
      data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
    };
    const cluster = clusterOf({ secrets: { 'shop/regcred': other } });
    const { lands } = await setup(t, [able, poor], { cluster });
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-new']);
  });
  await t.test('that are malformed leave nobody out', async (t) => {
    const broken = { ...regcred, data: { '.dockerconfigjson': Buffer.from('{').toString('base64') } };
    const cluster = clusterOf({ secrets: { 'shop/regcred': broken } });
    const { lands } = await setup(t, [able, poor], { cluster });
    t.strictSame(await lands(), ['node-able', 'node-new']);
    t.strictSame(await lands({ imagePullSecrets }), ['node-able', 'node-poor', 'node-new']);
  });
});
