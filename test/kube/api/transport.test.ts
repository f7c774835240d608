import { createServer } from 'node:https';
import t, { type Test } from 'tap';
import type { AccessNow, KubeAccess } from '../../../src/kube/api/access.ts';
import type { KubeError } from '../../../src/kube/api/errors.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { createCa } from '../../support/certificates.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { connect, connectedStore, failure } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { listen } from '../../support/listen.ts';
import { like } from '../../support/like.ts';

const nodes = '/api/v1/nodes';

async function start(t: Test, options: Parameters<typeof connectedStore>[1] = {}) {
  const { store, client } = await connectedStore(t, { isPlain: false, ...options });
  store.put(`${nodes}/n`, {});
  return { store, client, get: (signal = neverAborted) => client.get(`${nodes}/n`, { signal }) };
}

const times = (length: number, run: () => Promise<unknown>): Promise<unknown> =>
  Promise.all(Array.from({ length }, run));

void t.test('sequential requests share one connection; concurrent ones use at most 32', async (t) => {
  const { store, get } = await start(t);
  for (let i = 0; i < 40; i++) await get();
  t.equal(store.connections(), 1);
  for (let round = 0; round < 5; round++) {
    await times(16, () => get());
  }
  t.equal(store.connections(), 16);
  await times(100, () => get());
  t.equal(store.connections(), 32, '100 concurrent requests use 32');
});

void t.test('watches do not use up the connections of other requests', async (t) => {
  const { store, client, get } = await start(t);
  const ending = new AbortController();
  const watches = Array.from({ length: 40 }, async () => {
    const call = { signal: ending.signal, query: { watch: true, resourceVersion: '0' }, idleMs: 60_000 };
    for await (const _ of client.lines(nodes, call));
  });
  const ended = Promise.allSettled(watches);
  await store.until(() => store.watches() === 40);
  t.strictSame(await get(), store.get(`${nodes}/n`));
  await times(100, () => get());
  t.equal(store.connections(), 40 + 32);
  ending.abort();
  await ended;
});

void t.test('failed requests keep their connection open', async (t) => {
  const { store, client } = await start(t);
  store.fault(/^(?:POST|PATCH|DELETE)/, { status: 429 });
  for (let i = 0; i < 20; i++) {
    await failure(client.get(`${nodes}/none`, { signal: neverAborted }));
    await failure(client.create(nodes, {}, { signal: neverAborted }));
    await failure(client.patch(`${nodes}/n`, { type: 'merge', body: {} }, { signal: neverAborted }));
    await failure(client.delete(`${nodes}/n`, { signal: neverAborted }));
  }
  t.equal(store.connections(), 1);
});

function renewing({ access }: KubeStore) {
  const state: { renewed: number; broken?: Error } = { renewed: 0 };
  return {
    state,
    access: {
      ...access,
      now: async (): Promise<AccessNow> => {
        const { tls } = await access.now();
        return { tls, authorization: secret(`Bearer token-number-${state.renewed}`) };
      },
      renew: () => {
        if (state.broken) throw state.broken;
        state.renewed += 1;
      },
    },
  };
}

void t.test('after a 401 the token is read again and the request is retried', async (t) => {
  const { store } = await start(t);
  const { access, state } = renewing(store);
  const client = connect(t, { access });
  store.fault((request) => request.authorization === 'Bearer token-number-0', { status: 401 });
  like(t, await client.create(nodes, { metadata: { name: 'x' } }, { signal: neverAborted }), {
    metadata: { name: 'x' },
  });
  t.equal(state.renewed, 1);
  t.equal(store.writes().length, 2);
  await client.get(`${nodes}/n`, { signal: neverAborted });
  t.equal(state.renewed, 1);
});

void t.test('while the token is refused, it is read again at most once a second', async (t) => {
  const { store } = await start(t);
  const time = createFakeClock();
  const { access, state } = renewing(store);
  const client = connect(t, { access, clock: time });
  store.fault(/./, { status: 401 });
  const failed = (): Promise<KubeError> => failure(client.get(`${nodes}/n`, { signal: neverAborted }));
  like(t, await failed(), { code: 'unauthorized', temporary: false });
  t.equal(store.requests.length, 2);
  for (let i = 0; i < 10; i++) t.equal((await failed()).code, 'unauthorized');
  t.equal(state.renewed, 1);
  t.equal(store.requests.length, 12, 'the same token is not retried');
  await time.advance(1000);
  await failed();
  t.equal(state.renewed, 2);
  await time.advance(1000);
  state.broken = new Error('a kubeconfig that is being written');
  t.equal((await failed()).code, 'unauthorized');
});

void t.test('without renew, a 401 is not retried', async (t) => {
  const { store, get } = await start(t);
  store.fault(/./, { status: 401 });
  t.equal((await failure(get())).code, 'unauthorized');
  t.equal(store.requests.length, 1);
});

void t.test('idle connections that the server closed cause no error', async (t) => {
  const { store, get } = await start(t);
  for (let i = 0; i < 20; i++) {
    await times(4, () => get());
    store.dropConnections();
    like(t, await get(), { metadata: { name: 'n' } });
  }
});

void t.test('after a reset only a GET on a used connection is retried', async (t) => {
  const { store, client, get } = await start(t);
  await get();
  store.fault(/^GET/, { reset: true, times: 1 });
  await get();
  store.fault(/^GET/, { reset: true, times: 2 });
  t.equal((await failure(get())).code, 'unavailable');
  await get();
  store.fault(/^PATCH/, { lost: true, times: 1 });
  const body = { metadata: { labels: { a: 'b' } } };
  const error = await failure(client.patch(`${nodes}/n`, { type: 'merge', body }, { signal: neverAborted }));
  like(t, error, { code: 'unavailable', temporary: true });
  t.equal(store.received(/^PATCH/).length, 1);
});

void t.test('after a timeout the idle connections are not used again', async (t) => {
  const { store, get } = await start(t, { timeoutMs: 5_000 });
  await times(8, () => get());
  t.equal(store.connections(), 8);
  store.fault(/^GET/, { hang: true, times: 1 });
  t.equal((await failure(get())).code, 'timeout');
  await get();
  t.equal(store.connections(), 9, 'a new connection, not one of the seven idle ones');
});

void t.test('an aborted signal is a KubeError, and no request is sent', async (t) => {
  const { store, get } = await start(t);
  const signal = AbortSignal.abort(new Error('enough'));
  like(t, await failure(get(signal)), { code: 'timeout', message: /enough/ });
  t.equal(store.requests.length, 0);
});

void t.test('requests are counted by verb and status', async (t) => {
  const metrics = createMetrics();
  const { store, client, get } = await start(t, { metrics });
  const name = 'archwright_kube_requests_total';
  await get();
  await client.get(nodes, { signal: neverAborted, query: { limit: 5 } });
  await client.create(nodes, { metadata: { name: 'b' } }, { signal: neverAborted });
  await failure(client.create(nodes, { metadata: { name: 'b' } }, { signal: neverAborted }));
  await client.delete(`${nodes}/b`, { signal: neverAborted });
  for (const [status, code] of [
    [503, '5xx'],
    [429, '429'],
    [418, '4xx'],
    [302, '3xx'],
  ] as const) {
    store.fault(/^PATCH/, { status, times: 1 });
    await failure(client.patch(`${nodes}/n`, { type: 'merge', body: {} }, { signal: neverAborted }));
    t.match(await metrics.render(), `${name}{verb="patch",code="${code}"} 1\n`);
  }
  const abort = new AbortController();
  const watching = (async () => {
    const query = { watch: true, resourceVersion: String(store.version()) };
    for await (const line of client.lines(nodes, { signal: abort.signal, idleMs: 5_000, query }))
      t.fail(line);
  })();
  await store.until(() => store.watches() === 1);
  await store.quiet();
  abort.abort(new Error('end'));
  await failure(watching);
  await store.close();
  await failure(get());
  const page = await metrics.render();
  for (const line of [
    'verb="get",code="2xx"} 1',
    'verb="list",code="2xx"} 1',
    'verb="create",code="2xx"} 1',
    'verb="create",code="409"} 1',
    'verb="delete",code="2xx"} 1',
    'verb="watch",code="2xx"} 1',
    'verb="get",code="none"} 1',
  ]) {
    t.match(page, `${name}{${line}\n`);
  }
});

void t.test('an intermediate CA is trusted as it is configured', async (t) => {
  const root = await createCa('root');
  const [ours, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const server = createServer(
    await ours.issue({ cn: 'kubernetes', ip: ['127.0.0.1'] }),
    (_request, response) => response.end('{"kind":"Node"}'),
  );
  const port = await listen(server);
  t.teardown(() => server.close().closeAllConnections());
  const ask = (ca: string): Promise<unknown> => {
    const access: KubeAccess = {
      server: `https://127.0.0.1:${port}`,
      namespace: 'default',
      description: 'test',
      now: () => Promise.resolve({ tls: { ca } }),
    };
    return connect(t, { access }).get(`${nodes}/n`, { signal: neverAborted });
  };
  t.strictSame(await ask(ours.cert), { kind: 'Node' });
  like(t, await failure(ask(other.cert)), { message: /certificate/ });
});

void t.test('unusable certificates are an error that names the server; renewed ones work', async (t) => {
  const { store } = await connectedStore(t, { isPlain: false });
  const good = await store.access.now();
  let tls: AccessNow['tls'] = { ...good.tls, cert: 'no certificate', key: 'no key' };
  const access: KubeAccess = { ...store.access, now: () => Promise.resolve({ ...good, tls }) };
  const client = connect(t, { access });
  store.put(`${nodes}/n`, {});
  like(t, await failure(client.get(`${nodes}/n`, { signal: neverAborted })), {
    code: 'unavailable',
    where: `GET ${nodes}/n`,
    message: /the certificates for 127\.0\.0\.1:\d+ cannot be used: .*no start line/,
  });
  tls = good.tls;
  t.strictSame(await client.get(`${nodes}/n`, { signal: neverAborted }), store.get(`${nodes}/n`));
});
