import t from 'tap';
import {
  type WebhookConfiguration,
  parseWebhooks,
  type Webhook,
} from '../../../../src/controller/state/webhooks-file.ts';
import {
  createWriter,
  isSame,
} from '../../../../src/controller/features/webhook-configuration/webhook-configuration.ts';
import type { KubeClient, Patch } from '../../../../src/kube/api/client.ts';
import { createWorld } from '../certificates/world.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { like } from '../../../support/like.ts';
import { createServer } from 'node:https';
import { probeWebhook } from '../../../../src/controller/features/webhook-configuration/endpoints.ts';
import { createCa } from '../../../support/certificates.ts';
import { listen } from '../../../support/listen.ts';
import { neverAborted } from '../../../support/never-aborted.ts';

const name = 'archwright';
const path = paths.mutatingWebhookConfigurations(name);
const webhooks = parseWebhooks(
  'webhooks: [{ name: a.arch.example, clientConfig: { service: { namespace: n, name: s } } }]',
  'f',
);

t.test('it stops writing if the cluster changes every configuration on write', async (t) => {
  const world = await createWorld(t);
  const context = world.context();
  /** Like an admission webhook for webhook configurations. */
  const theirs = '"namespaceSelector":{"matchLabels":{"their":"rule"}}';
  const enforced = (patch: Patch): Patch =>
    JSON.parse(JSON.stringify(patch).replaceAll('"namespaceSelector":{}', theirs)) as Patch;
  const stubborn: KubeClient = {
    ...context.client,
    patch: (at, patch, options) => context.client.patch(at, enforced(patch), options),
  };
  const write = createWriter({ ...context, client: stubborn }, name);
  const found = (): WebhookConfiguration => world.store.get(path) as WebhookConfiguration;
  world.store.put(path, {});
  t.ok(await write(found(), webhooks));
  like(t, found().webhooks, [{ namespaceSelector: { matchLabels: { their: 'rule' } } }]);
  t.notOk(await write(found(), webhooks), 'the result is accepted');
  t.equal(world.store.writes().length, 2);
  t.match(world.log.join(''), 'changes the webhook configuration as it is written');

  world.store.put(path, { ...found(), webhooks: [] });
  t.ok(await write(found(), webhooks), 'another change is reverted');
  const other: Webhook[] = webhooks.map((each) => ({ ...each, timeoutSeconds: 3 }));
  t.ok(await write(found(), other), 'changed webhooks are written');
  like(t, found().webhooks, [{ timeoutSeconds: 3 }]);
  t.notOk(await write(found(), other));
});

t.test('an object deleted meanwhile is not created again', async (t) => {
  const world = await createWorld(t);
  const write = createWriter(world.context(), name);
  world.store.put(path, {});
  const found = world.store.get(path) as WebhookConfiguration;
  await write(found, webhooks);
  const [request] = world.store.writes();
  like(t, request?.json, { metadata: { uid: found.metadata?.uid } }, 'the API server refuses another uid');
});

t.test('which differences count', async (t) => {
  const cases: [unknown, unknown, boolean][] = [
    [{ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 }, true],
    [{ a: 1, b: undefined }, { a: 1 }, true],
    [{ a: {} }, {}, false],
    [[1, 2], [2, 1], false],
  ];
  for (const [a, b, same] of cases) {
    t.equal(isSame(a, b), same, JSON.stringify([a, b]));
    t.equal(isSame(b, a), same, JSON.stringify([b, a]));
  }
});

t.test('which certificates a probe accepts', async (t) => {
  const root = await createCa('root');
  const [ours, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const name = 'archwright-webhook.archwright.svc';
  const { cert, key } = await ours.issue({ cn: 'webhook', dns: [name] });
  let status = 200;
  const server = createServer({ cert: `${cert}\n${ours.cert}`, key }, (request, response) => {
    response.writeHead(request.url === '/readyz' ? status : 404).end();
  });
  const port = await listen(server);
  t.teardown(() => server.close().closeAllConnections());
  const ask = (ca: string, serverName = name, path = '/readyz'): Promise<string | undefined> =>
    probeWebhook({ host: '127.0.0.1', port, serverName }, path, ca, neverAborted);

  t.equal(await ask(root.cert), undefined, 'a root, through the intermediate that the server presents');
  t.equal(await ask(ours.cert), undefined, 'an intermediate as trust anchor');
  t.match(await ask(other.cert), /issuer|verify/, 'another intermediate of the same root');
  t.match(await ask(ours.cert, 'other.archwright.svc'), /altnames/);
  t.equal(await ask(root.cert, name, '/mutate/other'), 'it answered with status 404');
  status = 503;
  t.equal(await ask(ours.cert), 'it answered with status 503');
});
