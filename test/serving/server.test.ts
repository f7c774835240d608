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
