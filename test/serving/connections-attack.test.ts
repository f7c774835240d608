/** Attack: a few clients use all connections of a server, to block the API server. */
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'tap';
import { createCa } from '../support/certificates.ts';
import { Connections } from '../../src/serving/connections.ts';
import { startServer } from '../../src/serving/server.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { rawConnection, send, tlsDirectory } from './support.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../support/captured.ts';

test('three addresses cannot use all connections', async (t) => {
  const metrics = createMetrics();
  const ca = await createCa();
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server', ip: ['127.0.0.1'] }));
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (_request, response) => response.end('hello'),
    log: recordingLog().log,
    metrics,
    tls: { source: dir },
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
    await until(async () => (await dropped()) === closed, 'the others are closed');
    await until(() => all.filter((socket) => !socket.closed).length === share, 'the clients see it');
  }
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => send(server.url, { ca: ca.cert, agent: false })),
  );
  t.strictSame(
    responses.map(({ body }) => body),
    Array.from({ length: 8 }, () => 'hello'),
    'the API server gets its responses',
  );
});

test('an address may open as many connections as it closed', async (t) => {
  const connections = new Connections(8);
  const open = (): Socket | undefined => {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress: '127.0.0.2',
      destroy: () => undefined,
    });
    return connections.add(socket as object as Socket) ? (socket as object as Socket) : undefined;
  };
  const first = Array.from({ length: 5 }, open);
  t.equal(first.filter((socket) => socket === undefined).length, 1);
  for (const socket of first.slice(0, 2)) socket?.emit('close');
  t.equal(connections.size, 2);
  t.strictSame(
    Array.from({ length: 3 }, open).map((socket) => socket !== undefined),
    [true, true, false],
  );
});
