import { connect } from 'node:net';
import { test, type Test } from 'tap';
import { startServer, type ServerLimits } from '../../src/serving/server.ts';
import { createCa } from '../support/certificates.ts';
import { rawConnection, tlsDirectory } from './support.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../support/captured.ts';

async function start(t: Test, limits: Partial<ServerLimits>, tlsDir?: string): Promise<number> {
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
    const socket = await rawConnection(t, await start(t, limits));
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
  const socket = await rawConnection(t, await start(t, { handshakeMs: 50 }, dir));
  await until(() => socket.closed, 'closed');
  t.equal(socket.received(), '', 'it was closed without a response');
});

test('a client that never reads its response is closed', async (t) => {
  const port = await start(t, { stalledMs: 100 });
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
