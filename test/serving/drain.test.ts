import { test, type Test } from 'tap';
import { startServer, type RunningServer, type ServerLimits } from '../../src/serving/server.ts';
import { keepAlive, rawConnection, recordingLog, send, until } from './support.ts';

/** A server that answers `/slow` when `release` is called. */
async function start(
  t: Test,
  limits: Partial<ServerLimits>,
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
  });
  t.teardown(() => server.drain(0));
  return {
    server,
    release: () => {
      for (const answer of held.splice(0)) answer();
    },
    waiting: () => held.length,
  };
}

/** The port stays closed when the quiet time is over. */
async function untilRefused(url: string): Promise<void> {
  const end = performance.now() + 10_000;
  while (performance.now() < end) {
    const error = await send(url).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error,
    );
    if (error?.code === 'ECONNREFUSED') return;
  }
  throw new Error('the server still accepts connections');
}

test('open requests get Connection: close, new connections are refused', async (t) => {
  const { server, release, waiting } = await start(t, { quietMs: 20 });
  const agent = keepAlive(t, server.url);
  const answer = send(`${server.url}/slow`, { agent });
  await until('the request is there', () => waiting() === 1);

  let drained = false;
  const drain = server.drain(10_000).then(() => (drained = true));
  await untilRefused(server.url);
  t.notOk(drained, 'it waits for the answer');
  release();
  t.match(await answer, { body: 'slow', headers: { connection: 'close' } });
  await drain;
  await t.rejects(send(server.url), { code: 'ECONNREFUSED' });
});

test('idle connections do not delay the end', async (t) => {
  const { server } = await start(t, { quietMs: 20 });
  const idle = await rawConnection(t, server.port);
  idle.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await until(
    'answered',
    () => idle.received().endsWith('fast\r\n0\r\n\r\n') || idle.received().endsWith('fast'),
  );
  const before = performance.now();
  await server.drain(60_000);
  t.ok(performance.now() - before < 10_000);
  await until('closed', () => idle.closed);
});

test('at the end of the grace period, connections are cut', async (t) => {
  const { server, waiting } = await start(t, { quietMs: 20 });
  const answer = send(`${server.url}/slow`);
  const silent = await rawConnection(t, server.port);
  await until('the request is there', () => waiting() === 1);
  answer.catch(() => undefined);
  await server.drain(100);
  await t.rejects(answer, { code: 'ECONNRESET' });
  await until('closed', () => silent.closed);
});

test('a second drain joins the first', async (t) => {
  const { server } = await start(t, { quietMs: 1 });
  t.equal(server.drain(1000), server.drain(1000));
  await server.drain(1000);
});

test('under load no request is lost', async (t) => {
  const [{ server }, { server: replica }] = [
    await start(t, { quietMs: 100 }),
    await start(t, { quietMs: 1 }),
  ];
  let answered = 0;
  const ended = new AbortController();

  /** As the API server: stays on its connection until told to close, then goes where the Service still leads. */
  async function client(): Promise<void> {
    const agent = keepAlive(t, server.url, { maxSockets: 1 });
    let url = server.url;
    while (!ended.signal.aborted) {
      const { headers } = await send(url, { agent });
      answered += 1;
      if (headers.connection === 'close') url = replica.url;
    }
    t.equal(url, replica.url, 'it was told');
  }
  const clients = Array.from({ length: 8 }, client);
  await until('there is load', () => answered > 200);
  await server.drain(10_000);
  ended.abort();
  await t.resolves(Promise.all(clients));
});
