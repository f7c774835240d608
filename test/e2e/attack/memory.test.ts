/**
 * Memory of the real webhook and agent under all attacks together: RSS stays below the chart's limits, and a
 * good pod is still placed. The processes run the image's bundle.
 */
import type { TcpNetConnectOpts } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { maxReviewBytes } from '../../../src/webhook/app.ts';
import { maxValues } from '../../../src/webhook/review.ts';
import { clientTls } from '../../daemon/support.ts';
import { sized } from '../../support/exhaustive.ts';
import { multiArch } from '../../support/registry/content.ts';
import { ca as webhookCa, podOf, review } from '../../webhook/support.ts';
import { MiB, type Measured } from './measured.ts';
import { startMeasured } from './measured-world.ts';

/** Opens TLS connections and leaves them idle. */
async function idle(
  t: Test,
  count: number,
  { url }: Measured,
  options: ConnectionOptions & Pick<TcpNetConnectOpts, 'localAddress'>,
) {
  const { hostname: host, port } = new URL(url);
  const one = (): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ ...options, host, port: Number(port) }, () => resolve(socket));
      t.teardown(() => socket.destroy());
      socket.once('error', reject).on('error', () => undefined);
    });
  const opened: TLSSocket[] = [];
  while (opened.length < count) opened.push(...(await Promise.all(Array.from({ length: 50 }, one))));
  return opened;
}

t.test('memory is limited under idle connections, held bodies and pods with 256 images', async (whole) => {
  const { host, pki, webhook, agent, statusesOf, survived } = await startMeasured(whole);

  const connections = sized(150, 1000);
  await whole.test(`${connections} idle TLS connections to each`, async (t) => {
    // They stay open during the other attacks. All come from one address, which may hold half of them.
    const localAddress = '127.0.0.2';
    // The agent's connections have a certificate, like those of a compromised webhook.
    await idle(whole, connections, webhook, { ca: webhookCa.cert, localAddress });
    const client = await clientTls(pki.clientDir);
    await idle(whole, connections, agent, {
      ca: pki.ca.cert,
      servername: 'archwright-agent',
      localAddress,
      ...client,
    });
    await survived(t, 'idle-connections');
  });

  await whole.test('connections that hold bodies of 7 MiB', async (t) => {
    const sockets = await idle(t, sized(50, 100), webhook, { ca: webhookCa.cert });
    const head = `POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${maxReviewBytes}\r\n\r\n`;
    // The last byte is missing.
    for (const socket of sockets) socket.write(head + ' '.repeat(maxReviewBytes - 1));
    await survived(t, 'held-bodies');
  });

  await whole.test('pods with 256 images', async (t) => {
    const manifest = multiArch(['linux/amd64', 'linux/arm64']);
    for (let wave = 0; wave < sized(1, 4); wave += 1) {
      const pods = Array.from({ length: sized(4, 8) }, (_, pod) => {
        const names = Array.from({ length: 256 }, (_, image) => `team-${wave}-${pod}/image-${image}`);
        for (const name of names) host.push(name, 'v1', manifest);
        return review({ object: podOf(names.map((name) => `${host.host}/${name}:v1`)) });
      });
      const statuses = await statusesOf(pods);
      t.ok(
        statuses.every((status) => status === 200 || status === 503),
        statuses.join(),
      );
    }
    await survived(t, 'many-images');
  });
});

t.test('memory is limited with reviews of many small values', async (t) => {
  const { webhook, statusesOf, survived } = await startMeasured(t);
  const most = maxValues - 100;
  const shapes = {
    'as many empty objects as accepted': [sized(15, 60), `[${'{},'.repeat(most / 2)}1]`],
    '60 KB of empty objects': [250, `[${'{},'.repeat(20_000)}1]`],
    '4 KB of nested lists': [1000, '['.repeat(2000) + ']'.repeat(2000)],
  } as const;
  for (const [what, [count, text]] of Object.entries(shapes)) {
    const body = review({ object: podOf(['registry.invalid/app:1']), options: 'HERE' }).replace(
      '"HERE"',
      text,
    );
    const statuses = await statusesOf(Array.from({ length: count }, () => body));
    t.comment(`${what}: ${Math.round(webhook.peakBytes() / MiB)}`);
    t.ok(
      statuses.every((status) => [200, 413, 503, 'closed'].includes(status)),
      what,
    );
  }
  await survived(t, 'many-values');
});

t.test('memory is limited with pods of huge labels and annotations', async (t) => {
  const { host, webhook, statusesOf, survived } = await startMeasured(t);
  const texts = (count: number, length: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, 'v'.repeat(length)]));
  const shapes = {
    'one long value': texts(1, 3 * MiB),
    'many short values': texts(100_000, 8),
    'escaped characters': { key: '\u0001'.repeat(MiB / 2) },
  };
  for (const [what, labels] of Object.entries(shapes)) {
    const pod = podOf([`${host.host}/good/app:no-attack`]);
    const body = review({ object: { ...pod, metadata: { ...pod.metadata, labels, annotations: labels } } });
    const statuses = await statusesOf(Array.from({ length: sized(4, 30) }, () => body));
    t.comment(`${what}: ${Math.round(webhook.peakBytes() / MiB)}`);
    t.ok(
      statuses.every((status) => [200, 413, 503, 'closed'].includes(status)),
      `${what}: ${statuses.join()}`,
    );
  }
  await survived(t, 'huge-metadata');
});
