/**
 * How webhook and real API server recognize each other: by certificates and a path that rotate under load with
 * `failurePolicy: Fail`, or by a client certificate of an AdmissionConfiguration. The webhook refuses others
 * before it reads their bodies.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import t from 'tap';
import { readAuthorities } from '../../../src/certificates/authorities.ts';
import type { WebhookConfiguration } from '../../../src/controller/state/webhooks-file.ts';
import { pathOf } from '../../../src/controller/features/webhook-configuration/endpoints.ts';
import type { Secret } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { send } from '../../serving/support.ts';
import { createCa, type PemPair } from '../../support/certificates.ts';
import { until } from '../../support/until.ts';
import { podOf, review } from '../../webhook/support.ts';
import {
  configureWebhook,
  metricOf,
  noTls,
  ownNamespace,
  prepareArchwright,
  startController,
  startWebhook,
  type Server,
} from './archwright/archwright.ts';
import { createPods } from './archwright/load.ts';
import { startCluster } from './harness.ts';
import { secretTexts, textsOf, writeWebhooksFile } from './archwright/issued.ts';
import { freePort } from './control-plane/ports.ts';
import { shortLease } from './archwright/start.ts';

const name = 'archwright';
const configured = paths.mutatingWebhookConfigurations(name);
const pathSecret = 'archwright-webhook-path';
/** The settling time is a twelfth, 4 s. */
const lives = { certificateMs: 48_000, caMs: 72_000 };
const body = review({ object: podOf(['probe.invalid/probe:1']) });

/** Sends the headers of a 7 MiB review. @returns the response before the connection is closed */
async function sendHeaders(webhook: Server, ca: string, path: string, client?: PemPair): Promise<string> {
  const { hostname, port } = new URL(webhook.url);
  const socket = connect({ host: hostname, port: Number(port), ca, ...client });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('close', () => resolve(text)).on('error', reject);
  const headers = `host: a\r\ncontent-type: application/json\r\ncontent-length: ${7 * 1024 * 1024}\r\n\r\n`;
  socket.write(`POST ${path} HTTP/1.1\r\n${headers}`);
  return promise;
}

t.test('no pod is refused while certificates and the path rotate', async (t) => {
  const cluster = await startCluster({}, t);
  await cluster.createNamespace(ownNamespace);
  await cluster.make('MutatingWebhookConfiguration', name);
  const port = await freePort();
  const controller = await startController(cluster, {
    tls: noTls,
    tuning: { ...shortLease, ...lives, pathRotationMs: 60_000 },
    settings: {
      certificates: 'builtin',
      'webhook-configuration': name,
      'webhooks-file': await writeWebhooksFile(cluster, `https://127.0.0.1:${port}`),
      'webhook-path-secret': pathSecret,
    },
  });
  const webhook = await startWebhook(cluster, {
    tls: noTls,
    port,
    settings: { 'webhook-path-secret': pathSecret },
  });
  const trusted = async () => (await secretTexts(cluster, 'archwright-webhook-tls'))['ca.crt'] ?? '';
  const authorities = new Set<string>();
  const areReplaced = (secret: Secret | undefined): boolean => {
    const { newest, previous } = readAuthorities(textsOf(secret) ?? {});
    if (newest) authorities.add(newest.certificate.id);
    return authorities.size >= 3 && previous.length === 0;
  };
  const replaced = cluster.waitFor(paths.secrets(ownNamespace, 'archwright-ca'), areReplaced, 300_000);

  const pathIn = (now: WebhookConfiguration | undefined): string => {
    const { clientConfig } = now?.webhooks?.[0] ?? {};
    return clientConfig ? pathOf(clientConfig) : '';
  };
  const nextPath = async (other = ''): Promise<string> => {
    const isNew = (now: WebhookConfiguration | undefined): boolean => !['', other].includes(pathIn(now));
    return pathIn(await cluster.waitFor<WebhookConfiguration>(configured, isNew, 120_000));
  };
  const statusAt = async (path: string): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const options = { method: 'POST', agent: false, ca: await trusted(), headers, body };
    return (await send(`${webhook.url}${path}`, options)).status;
  };
  const first = await nextPath();
  t.match(first, /^\/mutate\/[0-9a-f]{64}$/);
  const load = createPods(t, cluster);
  // The path rotates by age.
  const second = await nextPath(first);
  t.equal(await statusAt(second), 200);
  t.equal(await statusAt(first), 200, 'the previous path is accepted for a while');
  // As documented for a leaked path.
  await cluster.merge(paths.secrets(ownNamespace, pathSecret), { data: { rotated: null } });
  const third = await nextPath(second);
  t.equal(await statusAt(first), 404, 'then it is refused');
  t.equal(await statusAt(second), 200);
  t.match(await sendHeaders(webhook, await trusted(), first), /^HTTP\/1.1 404 [^]*connection: close/i);
  const before = load.count();
  await until(() => load.count() > before + 24, 'pods are admitted at the third path');
  // Two authorities are replaced.
  await replaced;
  await until(() => load.count() > 200, 'enough pods', 120_000);
  t.ok((await metricOf(webhook, 'archwright_admissions_total')) > load.count() / 2);
  await load.end();
  t.notMatch(controller.process.log(), /"level":"error"|PRIVATE KEY/);
  for (const { process } of [controller, webhook])
    for (const path of [first, second, third]) t.notOk(process.log().includes(path.slice(-64)), process.name);
});

t.test('the webhook requires the client certificate of the API server', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-admission-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const write = async (file: string, content: string | object): Promise<string> => {
    const path = join(directory, file);
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
    return path;
  };
  const port = await freePort();
  const [clients, others] = await Promise.all([createCa('clients'), createCa('others')]);
  const pair = await clients.issue({ cn: 'kube-apiserver', client: true });
  const user = {
    'client-certificate': await write('client.crt', pair.cert),
    'client-key': await write('client.key', pair.key),
  };
  const kubeConfigFile = await write('webhooks.kubeconfig', {
    apiVersion: 'v1',
    kind: 'Config',
    users: [{ name: `127.0.0.1:${port}`, user }],
  });
  const apiVersion = 'apiserver.config.k8s.io/v1';
  const configuration = { apiVersion, kind: 'WebhookAdmissionConfiguration', kubeConfigFile };
  const admission = await write('admission.json', {
    apiVersion,
    kind: 'AdmissionConfiguration',
    plugins: [{ name: 'MutatingAdmissionWebhook', configuration }],
  });
  const cluster = await startCluster({ apiServerFlags: [`--admission-control-config-file=${admission}`] }, t);
  const tls = await prepareArchwright(cluster);
  const settings = { 'webhook-client-ca': await write('clients.crt', clients.cert) };
  const webhook = await startWebhook(cluster, { tls, port, settings });
  await configureWebhook(cluster, { tls, webhook, failurePolicy: 'Fail' });
  const load = createPods(t, cluster);
  const ca = tls.webhookCa;
  const stranger = await others.issue({ cn: 'kube-apiserver', client: true });
  const server = await clients.issue({ cn: 'kube-apiserver', server: true });
  for (const [what, client] of [
    ['no certificate', undefined],
    ['a certificate of another authority', stranger],
    ["a server's certificate of that authority", server],
  ] as const)
    t.match(await sendHeaders(webhook, ca, '/mutate', client), /^HTTP\/1.1 403 [^]*connection: close/i, what);
  const headers = { 'content-type': 'application/json' };
  const options = { method: 'POST', agent: false, ca, headers, body, ...pair } as const;
  t.equal(
    (await send(`${webhook.url}/mutate`, options)).status,
    200,
    'a caller with its certificate is accepted',
  );
  await until(() => load.count() > 20, 'pods are admitted');
  await load.end();
});
