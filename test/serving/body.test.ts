import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { test, type Test } from 'tap';
import { BodyBudget, BodyError, readBody, type BodyLimits } from '../../src/serving/body.ts';
import { keepAlive, rawConnection, send } from './support.ts';
import { until } from '../support/until.ts';
import { listen } from '../support/listen.ts';

const limits: BodyLimits = { maxBytes: 1000, timeoutMs: 5000 };

/** A server whose response is the length of the body, or the code of the error. */
async function serve(
  t: Test,
  limits: BodyLimits,
): Promise<{ url: string; port: number; outcomes: string[] }> {
  const outcomes: string[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    readBody(request, limits).then(
      (body) => {
        outcomes.push(String(body.length));
        response.end(String(body.length));
      },
      (error: unknown) => {
        const code = error instanceof BodyError ? error.code : 'other';
        outcomes.push(code);
        response.writeHead(400).end(code);
      },
    );
  });
  const port = await listen(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, port, outcomes };
}

test('complete bodies are read', async (t) => {
  const { url } = await serve(t, limits);
  const agent = keepAlive(t, url);
  for (const size of [0, 1, 999, 1000]) {
    const response = await send(url, { method: 'POST', body: Buffer.alloc(size), agent });
    t.equal(response.body, String(size), `${size} bytes`);
  }
  const large = await serve(t, { ...limits, maxBytes: 3_000_000 });
  t.equal(
    (await send(large.url, { method: 'POST', body: Buffer.alloc(3_000_000) })).body,
    '3000000',
    'many chunks',
  );
});

test('a body that is too large by Content-Length is refused', async (t) => {
  const { url, port } = await serve(t, limits);
  t.equal((await send(url, { method: 'POST', body: Buffer.alloc(1001) })).body, 'too-large');

  const socket = await rawConnection(t, port);
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n');
  await until(() => socket.received().includes('too-large'), 'a response before any byte of the body');
});

test('a body that is too large without Content-Length is refused', async (t) => {
  const { url } = await serve(t, limits);
  const headers = { 'transfer-encoding': 'chunked' };
  t.equal((await send(url, { method: 'POST', headers, body: Buffer.alloc(1000) })).body, '1000');
  t.equal((await send(url, { method: 'POST', headers, body: Buffer.alloc(1001) })).body, 'too-large');
});

test('a body of 100 MB gets a 413, and memory stays small', async (t) => {
  const { url } = await serve(t, limits);
  const before = process.memoryUsage().arrayBuffers;
  const body = Buffer.alloc(100_000_000);
  const response = await send(url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body });
  t.equal(response.body, 'too-large');
  t.ok(
    process.memoryUsage().arrayBuffers - before - body.length < 20_000_000,
    'the refused body is not buffered',
  );
});

test('an endless body is disconnected', async (t) => {
  const { port } = await serve(t, limits);
  const socket = await rawConnection(t, port);
  let closed = false;
  socket.once('close', () => (closed = true));
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  const drip = setInterval(() => socket.write(`400\r\n${'a'.repeat(1024)}\r\n`), 20);
  t.teardown(() => clearInterval(drip));
  await until(() => closed, 'the connection is closed although the client keeps sending');
  t.match(socket.received(), 'too-large');
});

test('a disconnect is an error', async (t) => {
  const { port, outcomes } = await serve(t, limits);
  const socket = await rawConnection(t, port);
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc');
  socket.end();
  await until(() => outcomes.length > 0, 'an error for the reader');
  t.strictSame(outcomes, ['aborted']);
});

test('a body that does not arrive times out', async (t) => {
  const { port, outcomes } = await serve(t, { maxBytes: 10, timeoutMs: 50 });
  const socket = await rawConnection(t, port);
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc');
  await until(() => outcomes.length > 0, 'the deadline');
  t.strictSame(outcomes, ['timeout']);
});

test('a body that is too slow for its deadline is refused early', async (t) => {
  const { port, outcomes } = await serve(t, { maxBytes: 1_000_000, timeoutMs: 60_000 });
  const socket = await rawConnection(t, port);
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nabc');
  const drip = setInterval(() => socket.write('a'.repeat(100)), 50);
  t.teardown(() => clearInterval(drip));
  await until(() => outcomes.length > 0, 'it is too slow', 10_000);
  t.strictSame(outcomes, ['timeout']);
});

test('all bodies share one budget', (t) => {
  const budget = new BodyBudget(4_000_000);
  const [large, other, small, last] = [budget.open(), budget.open(), budget.open(), budget.open()];
  t.ok(large.grow(2_900_000));
  t.notOk(other.grow(300_000), 'large bodies have three quarters');
  t.ok(small.grow(200_000), 'small bodies have the rest');
  t.notOk(small.grow(100_000), 'a body that becomes large is large');
  t.ok(last.grow(100_000));
  large.release();
  large.release();
  t.ok(other.grow(2_700_000), 'released bytes are free, once');
  t.notOk(budget.open().grow(1_000_001));
  other.release();
  t.ok(other.grow(2_700_000));
  t.ok(budget.open().hasRoom(200_000));
  t.notOk(budget.open().grow(200_000, 7_000_000), 'a body that will be large is large');
  t.end();
});

test('a body without Content-Length uses the budget as it arrives', async (t) => {
  const budget = new BodyBudget(4000);
  const { url } = await serve(t, { ...limits, share: budget.open() });
  const headers = { 'transfer-encoding': 'chunked' };
  const body = Buffer.alloc(900);
  for (const expected of ['900', '900', '900', '900', 'overloaded'])
    t.equal((await send(url, { method: 'POST', headers, body })).body, expected);
  t.equal((await send(url, { method: 'POST', body })).body, 'overloaded', 'with Content-Length too');
});

test('an announced length uses no budget, and short chunks use more than their bytes', async (t) => {
  const budget = new BodyBudget(4000);
  const { port, url, outcomes } = await serve(t, { ...limits, share: budget.open() });
  const idle = await rawConnection(t, port);
  idle.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 900\r\n\r\n');
  for (let count = 0; count < 4; count += 1)
    t.equal((await send(url, { method: 'POST', body: Buffer.alloc(900) })).body, '900');
  idle.write('a');
  await until(() => outcomes.includes('overloaded'), 'one byte is too much');
});
