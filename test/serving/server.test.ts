import { test, type Test } from 'tap';
import { Agent } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import { startServer, type ServerOptions, type RunningServer } from '../../src/serving/server.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createCa } from '../support/certificates.ts';
import { keepAlive, rawConnection, send, tlsDirectory, writeTls } from './support.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';
import { parseListenAddress, urlOf } from '../../src/serving/address.ts';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Connections } from '../../src/serving/connections.ts';

const quick = { quietMs: 1, checkMs: 20 };

async function start(t: Test, options: Partial<ServerOptions> = {}): Promise<RunningServer> {
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (_request, response) => response.end('hello'),
    log: recordingLog().log,
    ...options,
    limits: { ...quick, ...options.limits },
  });
  t.teardown(() => server.drain(0));
  return server;
}

test('listens on a free port', async (t) => {
  const server = await start(t);
  t.equal(server.url, `http://127.0.0.1:${server.port}`);
  t.not(server.port, 0);
  t.equal((await send(server.url)).body, 'hello');
});

test('unusable addresses are an error', async (t) => {
  const first = await start(t);
  await t.rejects(start(t, { listen: `127.0.0.1:${first.port}` }), {
    name: 'ServingError',
    message: /another process listens there/,
  });
  await t.rejects(start(t, { listen: 'nonsense' }), { message: /not an address to listen on/ });
  await t.rejects(start(t, { listen: '192.0.2.1:0' }), {
    message: /does not have this address/,
  });
});

test('request timeouts do not close an idle connection', async (t) => {
  const server = await start(t, { limits: { headersMs: 50, requestMs: 60, checkMs: 10 } });
  const agent = keepAlive(t, server.url);
  const ports = new Set<number | undefined>();
  agent.on('free', (socket: { localPort?: number }) => ports.add(socket.localPort));
  await send(server.url, { agent });
  const unfinished = await rawConnection(t, server.port);
  unfinished.write('GET / HTTP/1.1\r\n');
  await until(() => unfinished.closed, 'a younger connection is cut by the limits');
  t.equal((await send(server.url, { agent })).body, 'hello');
  t.equal(ports.size, 1, 'one connection was used');
});

test('a handler that throws only closes its connection', async (t) => {
  const { log, lines } = recordingLog();
  const server = await start(t, {
    log,
    handler: (request, response) => {
      if (request.url === '/throw') throw new Error('broken handler');
      response.end('fine');
    },
  });
  await t.rejects(send(`${server.url}/throw`), { code: 'ECONNRESET' });
  t.equal((await send(server.url)).body, 'fine');
  like(t, lines, [{ level: 'error', err: { message: 'broken handler' } }]);
});

test('TLS 1.2 or later, HTTP/1.1 only', async (t) => {
  const ca = await createCa();
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server', ip: ['127.0.0.1'] }));
  const server = await start(t, { tls: { source: dir } });
  t.match(server.url, /^https:/);
  t.equal((await send(server.url, { ca: ca.cert })).body, 'hello');

  const handshake = (options: object): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: server.port, host: '127.0.0.1', ca: ca.cert, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.alpnProtocol}`);
        socket.destroy();
      });
      socket.on('error', reject);
    });
  t.equal(await handshake({ ALPNProtocols: ['h2', 'http/1.1'] }), 'TLSv1.3 http/1.1');
  t.equal(await handshake({ maxVersion: 'TLSv1.2' }), 'TLSv1.2 false');
  await t.rejects(handshake({ ALPNProtocols: ['h2'] }), /no application protocol/i);
  await t.rejects(handshake({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' }));
});

test('client certificates are required and verified', async (t) => {
  const [ca, other] = [await createCa(), await createCa()];
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server', ip: ['127.0.0.1'] }), ca.cert);
  const metrics = createMetrics();
  const server = await start(t, { tls: { source: dir, clientAuth: true }, metrics });
  const good = await ca.issue({ cn: 'client', client: true });
  const foreign = await other.issue({ cn: 'client', client: true });

  t.equal((await send(server.url, { ca: ca.cert, ...good })).body, 'hello');
  await t.rejects(send(server.url, { ca: ca.cert }), 'none');
  await t.rejects(send(server.url, { ca: ca.cert, ...foreign }), 'of another CA');
  await t.rejects(send(server.url.replace('https', 'http')), 'no TLS at all');
  t.match(await metrics.render(), /archwright_tls_handshake_failures_total [23]\n/);
});

test('an intermediate CA is trusted without its root', async (t) => {
  const root = await createCa('root');
  const [ca, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const server = await ca.issue({ cn: 'server', dns: ['server.test'] });
  const dir = await tlsDirectory(t, server, ca.cert);
  const running = await start(t, { tls: { source: dir, clientAuth: true, pollMs: 20 } });
  const trust = { ca: ca.cert, servername: 'server.test', allowPartialTrustChain: true };
  const [good, foreign, above] = await Promise.all(
    [ca, other, root].map((each) => each.issue({ cn: 'client', client: true })),
  );
  t.equal((await send(running.url, { ...trust, ...good })).body, 'hello');
  await t.rejects(send(running.url, { ...trust }), 'none');
  await t.rejects(send(running.url, { ...trust, ...foreign }), 'of another intermediate');
  await t.rejects(send(running.url, { ...trust, ...above }), 'of the root itself');
  await t.rejects(
    send(running.url, { ...trust, ...foreign, cert: `${foreign?.cert}\n${other.cert}` }),
    'with its chain',
  );

  const agent = new Agent({ ...trust, ...good });
  t.teardown(() => agent.destroy());
  const resumed: boolean[] = [];
  for (let count = 0; count < 2; count += 1) {
    agent.once('keylog', (_line, socket: TLSSocket) =>
      socket.once('secureConnect', () => resumed.push(socket.isSessionReused())),
    );
    t.equal((await send(running.url, { agent, headers: { connection: 'close' } })).body, 'hello');
  }
  t.strictSame(resumed, [false, true], 'a session can be resumed');

  await writeTls(dir, server, other.cert);
  let isTrusted = false;
  await until(() => {
    void send(running.url, { ...trust, ...foreign }).then(
      () => (isTrusted = true),
      () => undefined,
    );
    return isTrusted;
  }, 'the new CA is trusted');
  await t.rejects(send(running.url, { ...trust, ...good, agent: false }), 'no longer trusted');
  await t.rejects(send(running.url, { agent }), 'not by an earlier session either');
});

test('connections beyond the limit are dropped and counted', async (t) => {
  const metrics = createMetrics();
  const server = await start(t, { limits: { maxConnections: 2 }, metrics });
  await rawConnection(t, server.port);
  await rawConnection(t, server.port, '127.0.0.2');
  const third = await rawConnection(t, server.port, '127.0.0.3');
  await until(() => third.closed, 'the third is closed');
  t.match(await metrics.render(), /archwright_dropped_connections_total 1\n/);
});

const good: readonly [text: string, host: string | undefined, port: number, url: string][] = [
  ['127.0.0.1:8443', '127.0.0.1', 8443, 'https://127.0.0.1:8443'],
  ['localhost:0', 'localhost', 0, 'https://localhost:0'],
  [':8443', undefined, 8443, 'https://127.0.0.1:8443'],
  ['0.0.0.0:1', '0.0.0.0', 1, 'https://127.0.0.1:1'],
  ['[::1]:65535', '::1', 65535, 'https://[::1]:65535'],
  ['[::]:80', '::', 80, 'https://[::1]:80'],
  // The chart does not know if the pod's address is IPv4 or IPv6.
  ['[10.0.0.1]:80', '10.0.0.1', 80, 'https://10.0.0.1:80'],
];

for (const [text, host, port, url] of good) {
  test(`listens on ${text}`, async (t) => {
    t.strictSame(parseListenAddress(text), { host, port });
    t.equal(urlOf('https', host, port), url);
  });
}

for (const text of [
  '',
  '8443',
  'host',
  'host:',
  '::1:8443',
  '[::1]',
  '[host]:1',
  'host:65536',
  'host:-1',
  'a b:1',
  'http://a:1',
]) {
  test(`refuses "${text}"`, async (t) => {
    t.throws(() => parseListenAddress(text), {
      name: 'ServingError',
      message: /^".*" is not an address to listen on/,
    });
  });
}

/** Attack: a few clients use all connections of a server, to block the API server. */

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
