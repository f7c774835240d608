/** Attack: a few clients open as many connections as a server takes, to keep the API server out. */
import { test } from 'tap';
import { createCa } from '../support/certificates.ts';
import { startServer } from '../../src/serving/server.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { rawConnection, recordingLog, send, tlsDirectory, until } from './support.ts';

test('three addresses that open all connections leave some for the next one', async (t) => {
  const metrics = createMetrics();
  const ca = await createCa();
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server', ip: ['127.0.0.1'] }));
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (_request, response) => response.end('hello'),
    log: recordingLog().log,
    metrics,
    tls: { dir },
    limits: { quietMs: 1, maxConnections: 128 },
  });
  t.teardown(() => server.drain(0));
  const dropped = async (): Promise<number> =>
    Number(/^archwright_dropped_connections_total (\d+)$/m.exec(await metrics.render())?.[1]);
  let closed = 0;
  for (const [address, share] of [
    ['127.0.0.2', 64],
    ['127.0.0.3', 32],
    ['127.0.0.4', 16],
  ] as const) {
    const all = await Promise.all(Array.from({ length: 130 }, () => rawConnection(t, server.port, address)));
    closed += all.length - share;
    await until('the others are closed', async () => (await dropped()) === closed);
    await until('the clients see it', () => all.filter((socket) => !socket.closed).length === share);
  }
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => send(server.url, { ca: ca.cert, agent: false })),
  );
  t.same(
    answers.map(({ body }) => body),
    Array.from({ length: 8 }, () => 'hello'),
    'the API server has its answers',
  );
});
