import { test, type Test } from 'tap';
import { startServer, type RunningServer, type ServerLimits } from '../../src/serving/server.ts';
import { keepAlive, rawConnection, send, tlsDirectory } from './support.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';
import { connect } from 'node:net';
import { createCa } from '../support/certificates.ts';

/** A server that responds to `/slow` when `release` is called. */
async function start(
  t: Test,
  limits: Partial<ServerLimits>,
  clock?: Pick<Clock, 'sleep'>,
): Promise<{ server: RunningServer; release: () => void; waiting: () => number }> {
  const held: (() => void)[] = [];
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (request, response) => {
      if (request.url === '/slow') held.push(() => response.end('slow'));
      else response.end('fast');
    },
    log: recordingLog().log,
    limits,
    ...(clock && { clock }),
  });
  t.teardown(() => server.drain(0));
  return {
    server,
    release: () => {
      for (const respond of held.splice(0)) respond();
    },
    waiting: () => held.length,
  };
}

/** Waits for the end of the quiet time, when the port is closed. */
async function untilRefused(url: string): Promise<void> {
  const isRefused = (): Promise<boolean> =>
    send(url).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
    );
  await until(isRefused, 'a closed port');
}

test('requests in flight get Connection: close, new connections are refused', async (t) => {
  const { server, release, waiting } = await start(t, { quietMs: 20 });
  const agent = keepAlive(t, server.url);
  const response = send(`${server.url}/slow`, { agent });
  await until(() => waiting() === 1, 'the request is there');

  let drained = false;
  const drain = server.drain(10_000).then(() => (drained = true));
  await untilRefused(server.url);
  t.notOk(drained, 'the drain waits for the response');
  release();
  like(t, await response, { body: 'slow', headers: { connection: 'close' } });
  await drain;
  await t.rejects(send(server.url), { code: 'ECONNREFUSED' });
});

test('idle connections do not delay the drain', async (t) => {
  const { server } = await start(t, { quietMs: 20 });
  const idle = await rawConnection(t, server.port);
  idle.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await until(
    () => idle.received().endsWith('fast\r\n0\r\n\r\n') || idle.received().endsWith('fast'),
    'a response',
  );
  const before = performance.now();
  await server.drain(60_000);
  t.ok(performance.now() - before < 10_000);
  await until(() => idle.closed, 'closed');
});

test('connections are closed at the end of the grace period', async (t) => {
  const { server, waiting } = await start(t, { quietMs: 20 });
  const response = send(`${server.url}/slow`);
  const silent = await rawConnection(t, server.port);
  await until(() => waiting() === 1, 'the request is there');
  response.catch(() => undefined);
  await server.drain(100);
  await t.rejects(response, { code: 'ECONNRESET' });
  await until(() => silent.closed, 'closed');
});

test('a second drain joins the first', async (t) => {
  const { server } = await start(t, { quietMs: 1 });
  t.equal(server.drain(1000), server.drain(1000));
  await server.drain(1000);
});

test('no request is lost under load', async (t) => {
  const clock = createFakeClock();
  const [{ server }, { server: replica }] = [
    await start(t, { quietMs: 100 }, clock),
    await start(t, { quietMs: 1 }),
  ];
  let responses = 0;
  let moved = 0;
  const ended = new AbortController();

  /** Like the API server: keeps its connection until Connection: close, then connects to the next server. */
  async function client(): Promise<void> {
    const agent = keepAlive(t, server.url, { maxSockets: 1 });
    let url = server.url;
    while (!ended.signal.aborted) {
      const { headers } = await send(url, { agent });
      responses += 1;
      if (headers.connection !== 'close') continue;
      moved += 1;
      url = replica.url;
    }
  }
  const clients = Array.from({ length: 8 }, client);
  await until(() => responses > 200, '200 responses');
  const drained = server.drain(10_000);
  await until(() => moved === clients.length, 'each client got Connection: close');
  await clock.advance(100);
  await drained;
  ended.abort();
  await t.resolves(Promise.all(clients));
});

async function portOfServer(t: Test, limits: Partial<ServerLimits>, tlsDir?: string): Promise<number> {
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (request, response) => {
      request.resume().on('end', () => response.end(Buffer.alloc(request.url === '/big' ? 50_000_000 : 1)));
    },
    log: recordingLog().log,
    limits: { quietMs: 1, checkMs: 10, ...limits },
    ...(tlsDir !== undefined && { tls: { source: tlsDir } }),
  });
  t.teardown(() => server.drain(0));
  return server.port;
}

const cases: {
  readonly what: string;
  readonly limits?: Partial<ServerLimits>;
  /** Written immediately. */
  readonly text?: string;
  readonly drip?: string;
  readonly status?: string;
}[] = [
  {
    what: 'slow headers',
    limits: { headersMs: 100 },
    text: 'POST / HTTP/1.1\r\n',
    drip: 'x: y\r\n',
    status: '408 ',
  },
  {
    what: 'a slow body',
    limits: { headersMs: 50, requestMs: 100 },
    text: 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n',
    drip: 'a',
    status: '408 ',
  },
  { what: 'a silent connection', limits: { headersMs: 50 } },
  {
    // Node adds a second to the announced keep-alive time, for clients that use it completely.
    what: 'an idle connection',
    limits: { keepAliveMs: 50 },
    text: 'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
    status: '200 OK',
  },
  {
    what: 'too large headers',
    limits: { maxHeaderBytes: 1024 },
    text: `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(2000)}\r\n\r\n`,
    status: '431 ',
  },
  { what: 'not HTTP', text: '\x16\x03\x01 hello\r\n\r\n', status: '400 ' },
];

for (const { what, limits = {}, text = '', drip, status } of cases) {
  test(`${what} is closed`, async (t) => {
    const socket = await rawConnection(t, await portOfServer(t, limits));
    socket.write(text);
    const timer = setInterval(() => drip !== undefined && socket.write(drip), 10);
    t.teardown(() => clearInterval(timer));
    await until(() => socket.closed, 'closed');
    t.ok(socket.closed);
    if (status !== undefined) t.match(socket.received(), new RegExp(`^HTTP/1.1 ${status}`));
  });
}

test('a connection without a TLS handshake is closed', async (t) => {
  const ca = await createCa();
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server' }));
  const socket = await rawConnection(t, await portOfServer(t, { handshakeMs: 50 }, dir));
  await until(() => socket.closed, 'closed');
  t.equal(socket.received(), '', 'it was closed without a response');
});

test('a client that never reads its response is closed', async (t) => {
  const port = await portOfServer(t, { stalledMs: 100 });
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let ended = false;
  socket.on('error', () => (ended = true));
  socket.pause();
  socket.write('GET /big HTTP/1.1\r\nhost: a\r\n\r\n');
  // A paused socket does not notice the close; a write after the reset does.
  const probe = setInterval(() => socket.write('x'), 50);
  t.teardown(() => clearInterval(probe));
  await until(() => ended, 'the connection is reset');
  t.ok(ended, 'it was closed');
});
