import { test, type Test } from 'tap';
import { startServer, type RunningServer, type ServerLimits } from '../../src/serving/server.ts';
import { keepAlive, rawConnection, send } from './support.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { until } from '../support/until.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

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
