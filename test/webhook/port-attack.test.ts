/** Attacks through the webhook's port, on a webhook that runs as a process. */
import { connect, type TLSSocket } from 'node:tls';
import { test, type Test } from 'tap';
import { childEnv, registry, storeWithConfig } from '../cmd/world.ts';
import { send, tlsDirectory } from '../serving/support.ts';
import { until } from '../support/until.ts';
import { sized } from '../support/exhaustive.ts';
import { startProgram } from '../support/program.ts';
import { multiArch } from '../support/registry/content.ts';
import { maxValues } from '../../src/webhook/review.ts';
import { ca, podOf, admittedOf, review, serverPair } from './support.ts';
import { like } from '../support/like.ts';

const MiB = 1024 * 1024;
/** The chart's limit (`webhook.resources`). */
const memoryLimit = 384 * MiB;
const token = 'T'.repeat(43);

async function start(t: Test, args: readonly string[] = []) {
  const serverDir = await tlsDirectory(t, serverPair);
  const flags = ['--tls-dir', serverDir, ...args];
  const webhook = await startProgram('webhook', flags, { home: childEnv.HOME });
  t.teardown(() => webhook.stop());
  const { url } = webhook;
  const post = (body: string, path: string) =>
    send(`${url}${path}`, {
      method: 'POST',
      agent: false,
      ca: ca.cert,
      headers: { 'content-type': 'application/json' },
      body,
    });
  const open = (): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', ca: ca.cert }, () =>
        resolve(socket),
      );
      t.teardown(() => socket.destroy());
      socket.once('error', reject).on('error', () => undefined);
    });
  return { ...webhook, post, open, metrics: async () => (await send(`${webhook.health}/metrics`)).body };
}

function head(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
}

test('60 connections hold bodies of 7 MiB: memory stays below the limit, and other requests succeed', async (t) => {
  const webhook = await start(t);
  const path = '/mutate';
  const sockets = await Promise.all(Array.from({ length: 60 }, () => webhook.open()));
  let closed = 0;
  // All but the last byte.
  for (const socket of sockets) {
    socket.resume().once('close', () => (closed += 1));
    socket.write(head(path, 7 * MiB));
    socket.write(Buffer.alloc(7 * MiB - 1, ' '));
  }
  await until(() => closed >= 50, 'most are refused', 60_000);
  const good = admittedOf(await webhook.post(review({ object: podOf(['registry.invalid/app:1']) }), path));
  t.equal(good.allowed, true);
  t.comment(`${Math.round(webhook.peakBytes() / MiB)} MiB`);
  t.ok(webhook.peakBytes() < memoryLimit);
});

test('60 clients send large bodies slowly: a review of 300 KiB succeeds', async (t) => {
  const webhook = await start(t);
  const path = '/mutate';
  const sockets = await Promise.all(Array.from({ length: 60 }, () => webhook.open()));
  // 7 MiB each, and less for the rest of the budget.
  for (const [index, socket] of sockets.entries())
    socket.write(head(path, index < 40 ? 7 * MiB : 300 * 1024));
  const begun = performance.now();
  // Just above the minimum speed.
  const bytesPerSecond = 66 * 1024;
  let sent = 0;
  const drip = setInterval(() => {
    const due = Math.floor(((performance.now() - begun) / 1000) * bytesPerSecond);
    for (const socket of sockets) socket.write(Buffer.alloc(due - sent, ' '));
    sent = due;
  }, 50);
  t.teardown(() => clearInterval(drip));
  await until(() => sent > 2.5 * bytesPerSecond, 'checks of the minimum speed', 30_000);
  const object = podOf(['registry.invalid/app:1']);
  const annotations = { filler: 'x'.repeat(300 * 1024) };
  const body = review({ object: { ...object, metadata: { ...object.metadata, annotations } } });
  const answer = await webhook.post(body, path);
  t.equal(answer.status, 200, answer.body);
  t.equal(admittedOf(answer).allowed, true);
});

const most = maxValues - 100;
const many = sized(15, 60);
const bombs = [
  [many, 'white space', ' '.repeat(7 * MiB - 1000)],
  [many, 'as many empty objects as accepted', `[${'{},'.repeat(most / 2)}1]`],
  [many, 'more values than accepted', `[${'[[]],'.repeat(MiB)}1]`],
  [250, '60 KB of empty objects', `[${'{},'.repeat(20_000)}1]`],
  [1000, '4 KB of nested lists', `${'['.repeat(2000)}${']'.repeat(2000)}`],
] as const;

test('complete bodies at once: memory stays below the limit', async (t) => {
  const webhook = await start(t);
  for (const [bodies, what, text] of bombs) {
    const path = '/mutate?timeout=2s';
    const pod = podOf(['registry.invalid/app:1']);
    const body = review({ object: pod, options: 'HERE' }).replace(
      '"HERE"',
      `[1]${text}`.slice(text.startsWith('[') ? 3 : 0),
    );
    const answers = await Promise.allSettled(Array.from({ length: bodies }, () => webhook.post(body, path)));
    const statuses = answers.map((each) => (each.status === 'fulfilled' ? each.value.status : 'closed'));
    t.comment(
      `${bodies} of ${what}: ${Math.round(webhook.peakBytes() / MiB)} MiB, ${statuses.filter((one) => one === 200).length} answered`,
    );
    t.ok(webhook.peakBytes() < memoryLimit, what);
    t.ok(
      statuses.every((status) => [200, 413, 503, 'closed'].includes(status)),
      what,
    );
    t.equal(admittedOf(await webhook.post(review({ object: pod }), path)).allowed, true, what);
  }
});

test('a forged review reveals nothing about a private image, and its body is not read', async (t) => {
  const host = await registry(t);
  host.push('team/app', 'v1', multiArch(['linux/arm64']));
  const { store, config } = await storeWithConfig(t);
  const data = { current: Buffer.from(token).toString('base64') };
  store.put('/api/v1/namespaces/archwright/secrets/path', { apiVersion: 'v1', kind: 'Secret', data });
  const namespace = ['--namespace', 'archwright', '--webhook-path-secret', 'path'];
  const webhook = await start(t, ['--kubeconfig', config, ...namespace]);
  const good = review({ object: podOf(['registry.invalid/app:1']) });
  const isKnown = async () => (await webhook.post(good, `/mutate/${token}`)).status === 200;
  await until(isKnown, 'the path', 20_000);
  const forged = review({ object: podOf([`${host.host}/team/app:v1`]) });
  for (const path of [
    '/mutate',
    '/mutate/',
    `/mutate/${'A'.repeat(43)}`,
    `/mutate/${token}x`,
    `/x/${token}`,
    '/validate',
  ]) {
    like(t, await webhook.post(forged, path), { status: 404, body: 'not found\n' }, path);
  }
  t.strictSame(host.requests, []);
  const socket = await webhook.open();
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(head('/mutate', 7 * MiB));
  await closed;
  t.match(text, /^HTTP\/1.1 404 [^]*connection: close/i);
  t.notMatch(webhook.log(), token);
});
