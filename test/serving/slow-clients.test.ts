import { connect } from 'node:net';
import { test, type Test } from 'tap';
import { startServer, type ServerLimits } from '../../src/serving/server.ts';
import { createCa } from '../support/certificates.ts';
import { rawConnection, recordingLog, tlsDirectory, until } from './support.ts';

async function start(t: Test, limits: Partial<ServerLimits>, tlsDir?: string): Promise<number> {
  const server = await startServer({
    listen: '127.0.0.1:0',
    handler: (request, response) => {
      request.resume().on('end', () => response.end(Buffer.alloc(request.url === '/big' ? 50_000_000 : 1)));
    },
    log: recordingLog().log,
    limits: { quietMs: 1, checkMs: 10, ...limits },
    ...(tlsDir !== undefined && { tls: { dir: tlsDir } }),
  });
  t.teardown(() => server.drain(0));
  return server.port;
}

/** Writes a piece every 10 ms for as long as the connection lasts. */
function drip(t: Test, socket: { write(text: string): void }, piece: string): void {
  const timer = setInterval(() => socket.write(piece), 10);
  t.teardown(() => clearInterval(timer));
}

test('slow headers', async (t) => {
  const socket = await rawConnection(t, await start(t, { headersMs: 100 }));
  socket.write('POST / HTTP/1.1\r\n');
  drip(t, socket, 'x: y\r\n');
  await until('closed', () => socket.closed);
  t.match(socket.received(), /^HTTP\/1.1 408 /);
});

test('a slow body', async (t) => {
  const socket = await rawConnection(t, await start(t, { headersMs: 50, requestMs: 100 }));
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n');
  drip(t, socket, 'a');
  await until('closed', () => socket.closed);
  t.match(socket.received(), /^HTTP\/1.1 408 /);
});

test('a silent connection', async (t) => {
  const socket = await rawConnection(t, await start(t, { headersMs: 50 }));
  await until('closed', () => socket.closed);
  t.ok(socket.closed, 'it was closed');
});

test('a TLS handshake that never starts', async (t) => {
  const ca = await createCa();
  const dir = await tlsDirectory(t, await ca.issue({ cn: 'server' }));
  const socket = await rawConnection(t, await start(t, { handshakeMs: 50 }, dir));
  await until('closed', () => socket.closed);
  t.equal(socket.received(), '', 'it was closed without a word');
});

test('an idle connection', async (t) => {
  // Node adds a second to what it promises, so that a client that counts exactly is not cut.
  const socket = await rawConnection(t, await start(t, { keepAliveMs: 50 }));
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('closed', () => socket.closed);
  t.match(socket.received(), /^HTTP\/1.1 200 OK/);
});

test('a client that never reads its answer', async (t) => {
  const port = await start(t, { stalledMs: 100 });
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let ended = false;
  socket.on('error', () => (ended = true));
  socket.pause();
  socket.write('GET /big HTTP/1.1\r\nhost: a\r\n\r\n');
  // A paused socket does not see its end; a write after the reset does.
  const probe = setInterval(() => socket.write('x'), 50);
  t.teardown(() => clearInterval(probe));
  await until('the connection is reset', () => ended);
  t.ok(ended, 'it was closed');
});

test('too large headers', async (t) => {
  const socket = await rawConnection(t, await start(t, { maxHeaderBytes: 1024 }));
  socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(2000)}\r\n\r\n`);
  await until('closed', () => socket.closed);
  t.match(socket.received(), /^HTTP\/1.1 431 /);
});

test('not HTTP', async (t) => {
  const socket = await rawConnection(t, await start(t, {}));
  socket.write('\x16\x03\x01 hello\r\n\r\n');
  await until('closed', () => socket.closed);
  t.match(socket.received(), /^HTTP\/1.1 400 /);
});
