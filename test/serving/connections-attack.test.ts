/** Attack: a few clients open as many connections as a server takes, to keep the API server out. */
import { test } from 'tap';
import { startServer } from '../../src/serving/server.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { rawConnection, recordingLog, until } from './support.ts';

test('three addresses that open all connections leave some for the next one', async (t) => {
  const metrics = createMetrics();
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (_request, response) => response.end('hello'),
    log: recordingLog().log,
    metrics,
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
  const api = await Promise.all(Array.from({ length: 8 }, () => rawConnection(t, server.port)));
  for (const socket of api) socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('the API server has its answers', () => api.every((socket) => /hello/.test(socket.received())));
});
