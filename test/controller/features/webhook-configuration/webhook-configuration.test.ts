/** The feature over an API server with a store, with real webhook servers. */
import { lead } from '../../leader.ts';
import t from 'tap';
import { issueAuthority, issueLeaf } from '../../../../src/certificates/issue.ts';
import {
  createWriter,
  webhookConfiguration,
} from '../../../../src/controller/features/webhook-configuration/webhook-configuration.ts';
import { createWorld } from '../certificates/world.ts';
import {
  bundleIds,
  endpoints,
  fileText,
  get,
  logged,
  name,
  path,
  policy,
  put,
  slice,
  start,
  startHook,
  subject,
  validity,
  withHook,
} from './support.ts';
import { like } from '../../../support/like.ts';
import {
  type Webhook,
  type WebhookConfiguration,
  parseWebhooks,
} from '../../../../src/controller/state/webhooks-file.ts';
import type { KubeClient, Patch } from '../../../../src/kube/api/client.ts';
import { createServer } from 'node:https';
import { probeWebhook } from '../../../../src/controller/features/webhook-configuration/endpoints.ts';
import { createCa } from '../../../support/certificates.ts';
import { listen } from '../../../support/listen.ts';
import { neverAborted } from '../../../support/never-aborted.ts';

t.test('it adds the webhooks to an empty configuration, and repairs changes', async (t) => {
  const world = await createWorld(t);
  const [a, b] = [await issueAuthority(validity), await issueAuthority(validity)];
  const hook = await startHook(t, await issueLeaf(a, subject, validity));
  hook.status = 503;
  const { write, end, state } = await start(t, world, 'webhooks: {');
  await state('missing');
  t.equal(get(world), undefined, 'the configuration is not created');
  world.store.put(path, { metadata: { labels: { 'app.kubernetes.io/managed-by': 'Helm' } } });
  await state('no-file');
  write(fileText());
  await state('no-authority');
  put(world, b);
  await state('waiting');
  endpoints(world, [{ port: hook.port, ready: false }]);
  await state('waiting');
  endpoints(world, [{ port: hook.port, ready: true }]);
  await logged(world, 'certificate');
  t.equal(get(world)?.webhooks, undefined);
  put(world, a);
  await logged(world, 'status 503');
  t.equal(get(world)?.webhooks, undefined);
  hook.status = 200;
  await state('in-force');
  like(t, get(world), {
    metadata: { labels: { 'app.kubernetes.io/managed-by': 'Helm' } },
    webhooks: [
      {
        name: 'pods.arch.example',
        failurePolicy: 'Fail',
        timeoutSeconds: 10,
        clientConfig: { service: { name: 'hook', port: 443, path: '/mutate' } },
      },
    ],
  });
  t.strictSame(bundleIds(world), [a.certificate.id]);

  // Another writer edits it.
  const good = get(world);
  const [webhook] = good?.webhooks ?? [];
  const { probes } = hook;
  const clientConfig = webhook?.clientConfig;
  const wanted = JSON.stringify(good?.webhooks);
  const edits: [string, object[]][] = [
    ['no caBundle', [{ ...webhook, clientConfig: { service: clientConfig?.service } }]],
    ['a selector', [{ ...webhook, objectSelector: { matchLabels: { a: 'b' } } }]],
    ['one webhook more', [{ ...webhook }, { ...webhook, name: 'other.example' }]],
    ['none', []],
  ];
  for (const [what, webhooks] of edits) {
    world.store.put(path, { ...good, webhooks });
    await world.store.until(() => JSON.stringify(get(world)?.webhooks) === wanted, what);
  }
  t.ok(hook.probes > probes, 'it is probed before it is added again');

  write(fileText('failurePolicy: Ignore'));
  await world.store.until(() => policy(world) === 'Ignore', 'the new file applies');
  write('webhooks: {');
  await logged(world, 'the last good one stays in force');
  t.equal(policy(world), 'Ignore');

  // Uninstalling removes the object while the controller still runs.
  world.store.remove(path);
  await state('missing');
  t.equal(get(world), undefined);
  await end();
  t.notMatch(world.log.join(''), /"level":"error".*failed/);
});

t.test('a CA that is replaced at once stays trusted until the endpoints present the new one', async (t) => {
  const { world, a, hook } = await withHook(t);
  const b = await issueAuthority(validity);
  endpoints(world, [hook]);
  const { state } = await start(t, world, fileText(), { certificates: 'external' });
  await state('in-force');
  put(world, b);
  await world.store.until(() => bundleIds(world)?.length === 2, 'both are trusted');
  const looks = (): number => world.store.received(`GET ${path}`).length;
  const before = looks();
  await world.store.until(() => looks() > before + 2, 'more looks');
  t.strictSame(bundleIds(world), [b.certificate.id, a.certificate.id]);
  t.equal(world.log.filter((line) => line.includes('is up to date')).length, 1, 'one line for each change');
  hook.use(await issueLeaf(b, subject, validity));
  await world.store.until(() => bundleIds(world)?.length === 1, 'only the new is trusted');
  t.strictSame(bundleIds(world), [b.certificate.id]);
});

t.test('the first caBundle for the service CA comes from the chain of the webhook', async (t) => {
  const { world, a, hook } = await withHook(t);
  endpoints(world, [hook]);
  const leaf = await issueLeaf(a, subject, validity);
  const put = (pem: string) =>
    world.store.put('/api/v1/namespaces/archwright/secrets/archwright-webhook-serving-cert', {
      data: { 'tls.crt': btoa(pem) },
    });
  // What is left of built-in certificates.
  world.put('webhook', { 'tls.crt': leaf.certificate.pem, 'ca.crt': a.certificate.pem });
  put(leaf.certificate.pem);
  const { state } = await start(t, world, fileText(), { certificates: 'serviceCa' });
  await state('no-authority');
  t.equal(get(world)?.webhooks, undefined);
  put(leaf.certificate.pem + a.certificate.pem);
  await state('in-force');
  t.strictSame(bundleIds(world), [a.certificate.id]);
});

t.test('the port of the webhook is found by its name, if the Service has several', async (t) => {
  for (const portName of ['webhook', 'https']) {
    const { world, hook } = await withHook(t);
    const portsOf = (name: string): object[] => [
      { name: 'metrics', port: 1 },
      { name, port: hook.port },
      { name: 'x' },
    ];
    const addresses = [{ addresses: ['127.0.0.1'], conditions: { ready: true } }, { addresses: [] }];
    slice(world, addresses, portsOf('tls'));
    const { state, end } = await start(t, world);
    await state('waiting');
    await logged(world, 'has no port named webhook or https');
    t.equal(get(world)?.webhooks, undefined);
    slice(world, addresses, portsOf(portName));
    await state('in-force');
    await end();
  }
});

t.test('the endpoints of a Service that the file no longer names are not watched', async (t) => {
  const { world, hook } = await withHook(t, ['127.0.0.1']);
  const { write, state } = await start(t, world);
  await world.store.until(() => world.store.watches() === 3, 'configuration, Secret and endpoints');
  write(fileText('failurePolicy: Fail', `url: 'https://127.0.0.1:${hook.port}/mutate'`));
  await state('in-force');
  await world.store.until(() => world.store.watches() === 2, 'the watch ends');
});

t.test('without a configuration name or a file, it ends at once', async (t) => {
  const world = await createWorld(t);
  await lead(webhookConfiguration, world.context());
  const configuration = { webhookConfiguration: name };
  await lead(webhookConfiguration, world.context({ configuration, webhooks: undefined }));
  t.equal(world.store.requests.length, 0);
});

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

t.test('which certificates a probe accepts', async (t) => {
  const root = await createCa('root');
  const [ours, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const dnsName = 'archwright-webhook.archwright.svc';
  const { cert, key } = await ours.issue({ cn: 'webhook', dns: [dnsName] });
  let status = 200;
  const server = createServer({ cert: `${cert}\n${ours.cert}`, key }, (request, response) => {
    response.writeHead(request.url === '/readyz' ? status : 404).end();
  });
  const port = await listen(server);
  t.teardown(() => server.close().closeAllConnections());
  const ask = (ca: string, serverName = dnsName, at = '/readyz'): Promise<string | undefined> =>
    probeWebhook({ host: '127.0.0.1', port, serverName }, at, ca, neverAborted);

  t.equal(await ask(root.cert), undefined, 'a root, through the intermediate that the server presents');
  t.equal(await ask(ours.cert), undefined, 'an intermediate as trust anchor');
  t.match(await ask(other.cert), /issuer|verify/, 'another intermediate of the same root');
  t.match(await ask(ours.cert, 'other.archwright.svc'), /altnames/);
  t.equal(await ask(root.cert, dnsName, '/mutate/other'), 'it answered with status 404');
  status = 503;
  t.equal(await ask(ours.cert), 'it answered with status 503');
});
