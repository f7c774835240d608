/** The controller and the webhook as processes. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import '../../cmd/controller.ts';
import { run, start } from './run.ts';
import { storeWithConfig, files, kubeconfig } from './world.ts';
import { like } from '../support/like.ts';
import '../../cmd/webhook.ts';
import { createPki } from '../fleet/support.ts';
import { send } from '../serving/support.ts';
import { until } from '../support/until.ts';
import { createCa } from '../support/certificates.ts';

const lease = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';

async function cluster(t: Test) {
  const { store, config } = await storeWithConfig(t);
  const args = ['controller', '--kubeconfig', config, '--metrics-listen', '127.0.0.1:0'];
  return { store, args: [...args, '--namespace', 'archwright'] };
}

t.test('it leads, and ends on a stop signal', async (t) => {
  const { store, args } = await cluster(t);
  const stop = new AbortController();
  const env = { HOSTNAME: 'controller-7' };
  const running = run([...args, '--agent-tls-dir', join(t.testdir(), 'tls')], { env, stop: stop.signal });
  await store.until(() => store.get(lease) !== undefined, 'the Lease');
  like(t, store.get(lease), { spec: { holderIdentity: /^controller-7_[0-9a-f]{8}$/ } });
  await store.until(() => store.watches('/api/v1/nodes') > 0, 'the watches of the leader');
  stop.abort('SIGTERM');
  const { code, err } = await running;
  t.equal(code, 0);
  like(t, store.get(lease), { spec: { holderIdentity: '' } });
  t.match(err, /the controller is running/);
  await store.until(() => store.watches() === 0, 'the watches to end');
});

const listening = ['webhook', '--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0'];

t.test('before it has found agents, it listens but is not ready', async (t) => {
  const { serverDir, clientDir } = await createPki(t);
  const stop = new AbortController();
  const args = [...listening, '--tls-dir', serverDir, '--agents', 'endpointslices:a/b'];
  // Nothing listens there.
  const { config } = files(t, { config: kubeconfig('https://127.0.0.1:1') });
  args.push('--agent-tls-dir', clientDir, '--kubeconfig', config);
  const { err, ended } = start(args, { stop: stop.signal });
  const health = (): string | undefined => /"health":"([^"]+)"/.exec(err())?.[1];
  await until(() => health() !== undefined, 'health is served', 20_000);
  like(t, await send(`${health()}/readyz`, { agent: false }), { status: 503, body: /\[-\]warm-up failed/ });
  const { body } = await send(`${health()}/metrics`, { agent: false });
  t.match(body, /^archwright_fleet_available [01]$/m, 'the alert ArchwrightNoAgents follows this');
  stop.abort();
  t.equal((await ended).code, 0);
});

t.test('without directories, it follows its certificate and its path in its own Secrets', async (t) => {
  const { store, config } = await storeWithConfig(t);
  const ca = await createCa();
  const issue = { cn: 'webhook', ip: ['127.0.0.1'] };
  const put = (name: string, texts: Readonly<Record<string, string>>): void => {
    const encoded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const secret = { apiVersion: 'v1', kind: 'Secret', data: Object.fromEntries(encoded) as object };
    store.put(`/api/v1/namespaces/archwright/secrets/archwright-${name}`, secret);
  };
  const stop = new AbortController();
  const args = [...listening, '--kubeconfig', config, '--namespace', 'archwright'];
  args.push('--webhook-path-secret', 'archwright-webhook-path');
  const { err, ended } = start(args, { stop: stop.signal });
  const urlOf = (name: string): string => new RegExp(`"${name}":"([^"]+)"`).exec(err())?.[1] ?? '';
  await store.until(() => store.watches('/api/v1/namespaces/archwright/secrets') === 2, 'watches of Secrets');
  t.equal(urlOf('url'), '', 'it does not listen yet');

  const first = await ca.issue(issue);
  put('webhook-tls', { 'tls.crt': first.cert, 'tls.key': first.key });
  await until(() => urlOf('url') !== '', 'it listens', 20_000);
  const get = (path: string, trusted: string) =>
    send(`${urlOf('url')}${path}`, { agent: false, ca: trusted });
  like(t, await get('/readyz', ca.cert), { status: 503, body: /\[-\]path failed/ });
  put('webhook-path', { current: 'T'.repeat(43) });
  await until(async () => (await get(`/mutate/${'T'.repeat(43)}`, ca.cert)).status === 200, 'the path');
  const next = await createCa('next');
  const second = await next.issue(issue);
  put('webhook-tls', { 'tls.crt': second.cert, 'tls.key': second.key });
  const isNew = () => get('/readyz', next.cert).then(Boolean, () => false);
  await until(isNew, 'new connections have the new certificate');
  stop.abort();
  t.equal((await ended).code, 0);
});
