import { createServer, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { fencedClient, type FencedOptions } from '../../../src/kube/api/fenced.ts';
import { createRateLimiter } from '../../../src/async/rate-limiter.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/until.ts';
import { connect, connectedStore } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { listen } from '../../support/listen.ts';
import { like } from '../../support/like.ts';

const pods = '/api/v1/namespaces/team/pods';

async function start(t: Test, options: Partial<FencedOptions> = {}) {
  const { store, client } = await connectedStore(t);
  const leading = new AbortController();
  const time = createFakeClock();
  const limiter = createRateLimiter({ perSecond: 1, burst: 3, clock: time });
  store.put(`${pods}/a`, { spec: { nodeName: 'n' } });
  const fenced = fencedClient({ client, leading: leading.signal, limiter, ...options });
  const create = (): Promise<unknown> =>
    fenced.create(pods, { metadata: { generateName: 'x-' } }, { signal: neverAborted });
  const patch = (): Promise<unknown> =>
    fenced.patch(`${pods}/a`, { type: 'merge', body: { spec: { x: 1 } } }, { signal: neverAborted });
  const remove = (signal = neverAborted): Promise<void> => fenced.delete(`${pods}/a`, { signal });
  return { store, fenced, leading, time, create, patch, remove, writes: [create, patch, () => remove()] };
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof KubeError ? error.code : error),
  );

void t.test('writes are rate-limited, reads are not', async (t) => {
  const { store, fenced, time, writes } = await start(t);
  for (const write of writes) t.equal(await codeOf(write()), 'done');
  like(t, store.writes(), [{ method: 'POST' }, { method: 'PATCH' }, { method: 'DELETE' }]);
  const late = codeOf(fenced.create(pods, { metadata: { name: 'late' } }, { signal: neverAborted }));
  await time.advance(0);
  t.equal(store.writes().length, 3, 'the burst is used up');
  await fenced.get(pods, { signal: neverAborted });
  t.type(fenced.serverNow(), 'number');
  await time.advance(1000);
  t.equal(await late, 'done');
});

void t.test('after leadership is lost, writes are not sent and reads still work', async (t) => {
  const { store, fenced, leading, writes } = await start(t);
  leading.abort(new Error('deposed'));
  for (const write of writes) t.equal(await codeOf(write()), 'not-leading');
  t.strictSame(store.writes(), []);
  await fenced.get(`${pods}/a`, { signal: neverAborted });
  for (const write of writes) await t.rejects(write(), { temporary: false, message: /not sent/ });
});

void t.test('a lease that expired by the clock blocks writes before its timer runs', async (t) => {
  let holds = true;
  const { store, patch } = await start(t, { holds: () => holds });
  t.equal(await codeOf(patch()), 'done');
  holds = false;
  t.equal(await codeOf(patch()), 'not-leading');
  t.equal(store.writes().length, 1);
});

void t.test('a queued write is not sent if the lease ends while it waits', async (t) => {
  let holds = true;
  const { store, time, create, remove } = await start(t, { holds: () => holds });
  for (let i = 0; i < 3; i++) await codeOf(create());
  const waiting = codeOf(remove());
  await time.advance(500);
  holds = false;
  await time.advance(500);
  t.equal(await waiting, 'not-leading');
  t.ok(store.get(`${pods}/a`));
});

void t.test('losing leadership aborts running writes and drops queued ones', async (t) => {
  const { store, fenced, leading, time, create, patch } = await start(t);
  for (let i = 0; i < 2; i++) await codeOf(create());
  store.fault(/^PATCH/, { hang: true });
  const running = patch();
  await store.until(() => store.received(/^PATCH/).length === 1);
  const waiting = fenced.create(pods, { metadata: { name: 'late' } }, { signal: neverAborted });
  const ends = [
    t.rejects(running, { code: 'not-leading', message: /broken off/ }),
    t.rejects(waiting, { code: 'not-leading', message: /not sent/ }),
  ];
  await time.advance(0);
  leading.abort(new Error('deposed'));
  await Promise.all(ends);
  await time.advance(60_000);
  t.equal(store.get(`${pods}/late`), undefined);
});

void t.test('an aborted write is a timeout, not a loss of leadership', async (t) => {
  const { store, time, create, remove } = await start(t);
  for (let i = 0; i < 3; i++) await codeOf(create());
  const abort = new AbortController();
  const waiting = codeOf(remove(abort.signal));
  await time.advance(0);
  abort.abort(new Error('enough'));
  t.equal(await waiting, 'timeout');
  t.ok(store.get(`${pods}/a`));
});

void t.test('Retry-After of a busy server delays all writes, that of an eviction none', async (t) => {
  const { store, fenced, time, patch, remove } = await start(t);
  store.evictions(`${pods}/a`, { status: 429, retryAfter: 10 });
  t.equal(
    await codeOf(fenced.create(`${pods}/a/eviction`, {}, { signal: neverAborted })),
    'too-many-requests',
  );
  t.equal(await codeOf(patch()), 'done');
  store.fault(/^PATCH/, { status: 429, retryAfter: 3600, times: 1 });
  t.equal(await codeOf(patch()), 'too-many-requests');
  const next = codeOf(remove());
  await time.advance(29_999);
  t.ok(store.get(`${pods}/a`));
  await time.advance(1);
  t.equal(await next, 'done', 'the pause is limited to 30 s');
});

const limiterOfOne = createRateLimiter({ perSecond: 1, burst: 1, clock: createFakeClock() });
const kinds = { write: { leading: neverAborted, limiter: limiterOfOne }, event: {} };
for (const [kind, options] of Object.entries(kinds))
  void t.test(`a waiting ${kind} is not sent if the lease ends before it gets a connection`, async (t) => {
    const reading: ServerResponse[] = [];
    let isWritten = false;
    const server = createServer((request, response) => {
      if (request.method === 'GET') {
        reading.push(response);
      } else {
        isWritten = true;
        response.end('{}');
      }
    });
    const port = await listen(server);
    t.teardown(() => server.close());
    const client = connect(t, {
      access: {
        server: `http://127.0.0.1:${port}`,
        namespace: 'team',
        description: 'test',
        now: async () => ({ tls: {} }),
      },
    });
    let holds = true;
    const fenced = fencedClient({ client, holds: () => holds, ...options });
    // These occupy all connections.
    const reads = Array.from({ length: 32 }, () => client.get(`${pods}/a`, { signal: neverAborted }));
    await until(() => reading.length === 32);
    const write = codeOf(fenced.patch(`${pods}/a`, { type: 'merge', body: {} }, { signal: neverAborted }));
    await setImmediate();
    holds = false;
    for (const response of reading) response.end('{}');
    t.equal(await write, 'not-leading');
    await Promise.all(reads);
    t.notOk(isWritten);
  });
