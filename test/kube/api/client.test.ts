import t, { type Test } from 'tap';
import type { KubeError } from '../../../src/kube/api/errors.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { json, startKubeServer } from '../../support/kube-server.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { connect, failure } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

async function start(t: Test, timeoutMs = 5_000) {
  const server = await startKubeServer();
  t.teardown(() => server.close());
  return { server, client: connect(t, { access: server.access, timeoutMs }) };
}

void t.test('each HTTP status has an error code', async (t) => {
  const { server, client } = await start(t);
  const cases: [number, string, boolean][] = [
    [401, 'unauthorized', false],
    [403, 'forbidden', false],
    [404, 'not-found', false],
    [409, 'conflict', false],
    [410, 'gone', true],
    [422, 'invalid', false],
    [429, 'too-many-requests', true],
    [500, 'unavailable', true],
    [503, 'unavailable', true],
    [504, 'timeout', true],
    [201, 'bad-answer', false],
    [302, 'bad-answer', false],
  ];
  for (const [status, code, temporary] of cases) {
    server.script('/x', json({ kind: 'Status', message: 'the reason' }, status, { 'retry-after': '7' }));
    const error = await failure(client.get('/x', { signal: neverAborted }));
    like(t, error, { code, temporary, where: 'GET /x', retryAfterMs: 7000 });
    t.match(error.message, /the reason/);
  }
});

void t.test('an error keeps its status, however long its page is', async (t) => {
  const { server, client } = await start(t);
  server.script('/x', (_request, response) => {
    response.writeHead(503, { 'retry-after': '7' });
    response.end('<p>'.repeat(33_000));
  });
  const error = await failure(client.get('/x', { signal: neverAborted }));
  like(t, error, { code: 'unavailable', temporary: true, retryAfterMs: 7000 });
});

void t.test('a name that would be another path does not exist', async (t) => {
  const { server, client } = await start(t);
  server.script('/api/v1/namespaces/a/', json({ kind: 'Namespace' }));
  for (const name of ['.', '..']) {
    const path = paths.persistentVolumeClaims('a', name);
    const error = await failure(client.get(path, { signal: neverAborted }));
    like(t, error, { code: 'not-found', where: `GET ${path}` });
  }
  t.equal(server.requests.length, 0);
});

void t.test('responses that are not JSON are typed errors that do not quote them', async (t) => {
  const { server, client } = await start(t);
  server.script('/garbage', (_request, response) => response.end('<html>login</html>'));
  t.equal((await failure(client.get('/garbage', { signal: neverAborted }))).code, 'bad-answer');
  server.script('/proxy', (_request, response) => {
    response.statusCode = 502;
    response.end('<html>internal-host.corp</html>');
  });
  const error = await failure(client.get('/proxy', { signal: neverAborted }));
  t.equal(error.code, 'unavailable');
  t.notMatch(error.message, /internal-host/);
});

void t.test('a silent server ends in a timeout, an abort ends the request at once', async (t) => {
  const { server, client } = await start(t, 50);
  server.script('/silent', () => undefined);
  t.equal((await failure(client.get('/silent', { signal: neverAborted }))).code, 'timeout');
  server.script('/half', (_request, response) => {
    response.writeHead(200);
    response.write('{');
  });
  t.equal((await failure(client.get('/half', { signal: neverAborted }))).code, 'timeout');
  const abort = new AbortController();
  const slow = connect(t, { access: server.access });
  // A new path: on a busy machine the first request may time out before the server sees it.
  server.script('/silent-too', () => undefined);
  const pending = failure(slow.get('/silent-too', { signal: abort.signal }));
  await server.untilReceived('/silent-too', 1);
  abort.abort(new Error('enough'));
  like(t, await pending, { code: 'timeout', message: /enough/ });
});

void t.test('an unreachable server is unavailable, and the message names it', async (t) => {
  const { server, client } = await start(t);
  await server.close();
  const error = await failure(client.get('/x', { signal: neverAborted }));
  t.equal(error.code, 'unavailable');
  t.match(error.message, /127\.0\.0\.1:\d+ cannot be reached/);
});

void t.test(
  'a line may have the largest object that etcd takes; an endless line ends the watch',
  async (t) => {
    const { server, client } = await start(t);
    server.script('/endless', (_request, response) => {
      // The API server writes 1.5 MiB of `<` as 9 MiB.
      response.write(`${'\\u003c'.repeat(1.5 * 1024 * 1024)}\n`);
      response.write(Buffer.alloc(14 * 1024 * 1024, 97));
    });
    const lengths: number[] = [];
    const read = (async () => {
      for await (const line of client.lines('/endless', { signal: neverAborted, idleMs: 5000 }))
        lengths.push(line.length);
    })();
    t.equal((await failure(read)).code, 'too-large');
    t.strictSame(lengths, [9 * 1024 * 1024]);
  },
);

void t.test('a silent watch times out after idleMs', async (t) => {
  const { server, client } = await start(t);
  server.script('/idle', (_request, response) => {
    response.writeHead(200);
    response.flushHeaders();
  });
  const read = (async () => {
    for await (const line of client.lines('/idle', { signal: neverAborted, idleMs: 30 })) t.fail(line);
  })();
  t.equal((await failure(read)).code, 'timeout');
});

void t.test('a failing credential plugin is an error with its message', async (t) => {
  const { server } = await start(t);
  const now = (): Promise<never> => Promise.reject(new Error('exec plugin not found'));
  const client = connect(t, { access: { ...server.access, now } });
  const error = await failure(client.get('/x', { signal: neverAborted }));
  like(t, error, { code: 'unauthorized', message: /exec plugin not found/ });
});

void t.test('a deletion is guarded by what it names', async (t) => {
  const { server, client } = await start(t);
  for (const guard of [{ uid: 'u' }, { resourceVersion: '7' }, {}]) {
    server.script('/api/v1/things/a', json({}));
    await client.delete('/api/v1/things/a', { signal: neverAborted, ...guard });
    const { preconditions = {} } = JSON.parse(server.requests.at(-1)?.body ?? '') as {
      preconditions?: object;
    };
    t.strictSame(preconditions, guard);
  }
});

void t.test('create returns the object as the server stored it', async (t) => {
  const { server, client } = await start(t);
  for (const status of [200, 201]) {
    server.script('/api/v1/things', json({ kind: 'Thing', spec: { é: 1 }, status: { made: true } }, status));
    const made = await client.create(
      '/api/v1/things',
      { kind: 'Thing', spec: { é: 1 } },
      { signal: neverAborted },
    );
    t.strictSame(made, { kind: 'Thing', spec: { é: 1 }, status: { made: true } });
  }
  like(t, server.requests[0], {
    method: 'POST',
    path: '/api/v1/things',
    authorization: 'Bearer of-the-test',
    contentType: 'application/json',
    body: '{"kind":"Thing","spec":{"é":1}}',
  });
  t.equal(server.connections(), 1);
});

void t.test('a failed create has an error code and does not quote the object', async (t) => {
  const { server, client } = await start(t);
  const create = (path: string): Promise<KubeError> =>
    failure(client.create(path, { spec: 'what-was-sent' }, { signal: neverAborted }));
  for (const [status, code] of [
    [409, 'conflict'],
    [202, 'bad-answer'],
  ] as const) {
    server.script('/x', json({ kind: 'Status', message: 'the reason' }, status));
    const error = await create('/x');
    like(t, error, { code, where: 'POST /x', message: /^POST \/x: \d+ the reason/ });
    t.notMatch(error.message, /what-was-sent/);
  }
  server.script('/garbage', (_request, response) => response.end('<html>'));
  t.equal((await create('/garbage')).code, 'bad-answer');
  server.script('/large', (_request, response) => {
    response.writeHead(201);
    response.write(Buffer.alloc(11 * 1024 * 1024, 97));
  });
  t.equal((await create('/large')).code, 'too-large');
});

void t.test("the server's time is its last Date header and the time since", async (t) => {
  const { server } = await start(t);
  const clock = createFakeClock();
  const client = connect(t, { access: server.access, clock });
  const answer = async (date: string): Promise<void> => {
    server.script('/x', json({}, 200, { date }));
    await client.get('/x', { signal: neverAborted });
  };
  await answer('yesterday');
  t.equal(client.serverNow(), clock.now(), 'the local clock before the first one');
  for (const year of [2030, 2020]) {
    await answer(`Tue, 01 Jan ${year} 00:00:00 GMT`);
    await clock.advance(1500);
    clock.setWall(0);
    await answer('');
    t.equal(client.serverNow(), Date.UTC(year) + 1500);
  }
});
