/** The secret path of the webhook, its rotation, and client certificates. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { test, type Test } from 'tap';
import { watchAdmissionPaths } from '../../src/webhook/admission-paths.ts';
import { systemClock } from '../../src/async/clock.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { connectedStore } from '../kube/support.ts';
import { send } from '../serving/support.ts';
import { until } from '../support/until.ts';
import { createCa } from '../support/certificates.ts';
import { ca, podOf, review, scripted, serve } from './support.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

const [first, second, third] = ['a', 'b', 'c'].map((letter) => letter.repeat(43)) as [string, string, string];
const body = review({ object: podOf(['app:1']) });

const path = '/api/v1/namespaces/archwright/secrets/archwright-webhook-path';

async function pathsIn(t: Test) {
  const { store, client } = await connectedStore(t);
  const { log, lines } = recordingLog();
  const own = { client, namespace: 'archwright', clock: systemClock, log };
  const paths = watchAdmissionPaths({ ...own, name: 'archwright-webhook-path' });
  t.teardown(() => paths.close());
  const write = (texts: Readonly<Record<string, string>>): void => {
    const encoded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    store.put(path, { apiVersion: 'v1', kind: 'Secret', data: Object.fromEntries(encoded) as object });
  };
  return { paths, write, lines, store };
}

test('the current and the previous path are accepted, before and after a rotation', async (t) => {
  const { paths, write, lines } = await pathsIn(t);
  const {
    post,
    webhook,
    agent,
    lines: logged,
  } = await serve(t, {
    paths,
    source: scripted({ 'app:1': ['arm64'] }),
  });
  const status = async (path: string): Promise<number> => (await post(body, { path })).status;
  like(t, await post(body, { path: '/mutate' }), { status: 404, headers: { connection: 'close' } }, 'unread');
  like(t, await send(`${webhook.url}/readyz`, { agent }), { status: 503, body: /\[-\]path failed/ });
  write({ current: first });
  await until(async () => (await status(`/mutate/${first}?timeout=2s`)) === 200, 'the first path');
  like(t, await send(`${webhook.url}/mutate/${first}`, { agent }), { status: 200 }, 'a probe');
  t.equal((await send(`${webhook.url}/mutate/${second}`, { agent })).status, 404);
  t.equal(await status(`/validate/${first}`), 200);
  write({ current: second, previous: first });
  await until(async () => (await status(`/mutate/${second}`)) === 200, 'the next path');
  t.equal(await status(`/mutate/${first}`), 200);
  write({ current: third, previous: second });
  await until(async () => (await status(`/mutate/${first}`)) === 404, 'the end of the first path');
  t.equal(await status(`/mutate/${second}`), 200);
  for (const path of [
    '/mutate',
    `/mutate/${third.slice(1)}`,
    `/mutate/${third}/`,
    `/mutate/${third}${third}`,
    '/mutate/?',
  ])
    t.equal(await status(path), 404, path);
  t.notMatch(JSON.stringify([lines, logged]), first.slice(0, 20));
});

test('without a token the last path stays, and a record key is optional', async (t) => {
  const { paths, write, store } = await pathsIn(t);
  t.match(paths.problem(), /not known yet/);
  write({ current: first });
  await until(() => paths.problem() === undefined, 'the path');
  t.equal(paths.recordKey?.(), undefined);
  write({ current: first, 'record-key': second });
  await until(() => paths.recordKey?.() !== undefined, 'the key');
  t.equal(reveal(paths.recordKey?.() as never), second);
  const watched = () => store.watches('/api/v1/namespaces/archwright/secrets');
  await until(() => watched() === 1, 'the watch');
  write({ previous: third });
  store.remove(path);
  write({ current: second });
  await until(() => paths.routeOf(`/mutate/${second}`) === 'mutate', 'the next path');
  t.equal(paths.routeOf(`/mutate/${third}`), undefined);
  t.equal(paths.routeOf('/mutate/'), undefined);
});

test('with a client CA, only requests of the API server are accepted', async (t) => {
  const clients = await createCa('clients');
  const dir = await mkdtemp(join(tmpdir(), 'archwright-client-ca-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const clientCaFile = join(dir, 'clients.pem');
  await writeFile(clientCaFile, clients.cert);
  const { webhook, metric } = await serve(t, { clientCaFile, source: scripted({ 'app:1': ['arm64'] }) });
  const call = (identity: object) =>
    send(`${webhook.url}/mutate`, {
      method: 'POST',
      agent: false,
      ca: ca.cert,
      headers: { 'content-type': 'application/json' },
      body,
      ...identity,
    });
  t.equal((await call(await clients.issue({ cn: 'apiserver', client: true }))).status, 200);
  like(t, await call({}), { status: 403, headers: { connection: 'close' } });
  t.equal(
    (await call(await ca.issue({ cn: 'apiserver', client: true }))).status,
    403,
    'a certificate of another CA',
  );
  t.equal(await metric('archwright_admission_bad_requests_total{reason="no-certificate"}'), 2);
  t.equal((await send(`${webhook.url}/readyz`, { agent: false, ca: ca.cert })).status, 200, 'a probe');

  const session = await new Promise<Buffer>((resolve) => {
    const socket = connect({ port: webhook.port, host: '127.0.0.1', ca: ca.cert });
    t.teardown(() => socket.destroy());
    socket.once('session', resolve).on('error', () => undefined);
    socket.write('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n');
  });
  t.equal((await call({ session })).status, 403, 'a resumed session without a certificate');
});
