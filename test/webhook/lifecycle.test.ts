import { test } from 'tap';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createCa } from '../support/certificates.ts';
import { keepAlive, send, writeTls } from '../serving/support.ts';
import { until } from '../support/until.ts';
import { ca, clusterOf, freshFacts, hanging, podOf, admittedOf, review, scripted, serve } from './support.ts';
import { recordingLog } from '../support/captured.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';

function fleetKnowing(readShared: Fleet['readShared']): Fleet {
  return { readShared, useNodes: () => undefined, nodeReports: () => new Map() } as Partial<Fleet> as Fleet;
}

test("it loads the agents' facts before it is ready; agents that hang or fail delay the start for a bounded time", async (t) => {
  const complete: Fleet['readShared'] = () => Promise.resolve();
  const hang: Fleet['readShared'] = (_, signal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
  const fail: Fleet['readShared'] = () => Promise.reject(new Error('agents are away'));
  const warm = { level: 'info', msg: 'the cache is warm', learned: 2 };
  for (const [what, ends, expected] of [
    ['complete', complete, [{ ...warm, complete: true }]],
    ['hang', hang, [{ ...warm, complete: false }]],
    ['fail', fail, [{ level: 'warn' }, warm]],
  ] as const) {
    const cache = new FactsCache({ source: hanging, log: recordingLog().log });
    const fleet = fleetKnowing((onFacts, signal) => {
      onFacts(freshFacts('docker.io/library/warm:1', ['arm64']));
      onFacts(freshFacts('docker.io/library/other:1', ['amd64']));
      return ends(onFacts, signal);
    });
    const { admitPod, lines, webhook } = await serve(t, { cache, fleet, warmUpMs: 50 });
    t.strictSame((await admitPod(['warm:1'])).required, ['arm64'], what);
    t.equal(webhook.checks['warm-up']?.(), undefined, what);
    like(t, lines.slice(1), expected, what);
  }
});

test('if the cluster does not respond at the start, it logs a warning and serves requests', async (t) => {
  const cluster = clusterOf({ ready: () => Promise.reject(new Error('no answer')) });
  const { lines, webhook } = await serve(t, { cluster });
  like(t, lines.at(-1), { level: 'warn', msg: /treating namespaces as unlabeled/ });
  t.equal(webhook.checks['warm-up']?.(), undefined);
});

test('it is ready after the warm-up and not while stopping', async (t) => {
  let release: (() => void) | undefined;
  const cluster = clusterOf({ ready: () => new Promise((resolve) => (release = resolve)) });
  const { log } = recordingLog();
  const cache = new FactsCache({ source: hanging, log });
  const clock = createFakeClock();
  const starting = serve(t, { cluster, cache, clock });
  await until(() => release !== undefined, 'the wait for the cluster');
  release?.();
  const { webhook, agent } = await starting;
  t.equal((await send(`${webhook.url}/readyz`, { agent })).status, 200);
  const stopping = webhook.stop({ noticeMs: 5000, graceMs: 1000 });
  like(t, await send(`${webhook.url}/readyz`, { agent }), { status: 503, body: /\[-\]shutdown failed/ });
  t.equal((await send(`${webhook.url}/healthz`, { agent })).status, 200);
  await clock.advance(5000);
  await clock.advanceToNext();
  await stopping;
  await t.rejects(send(`${webhook.url}/healthz`, { agent: false, ca: ca.cert }), { code: 'ECONNREFUSED' });
});

test('no admission is lost when certificates change, or the webhook stops, under load', async (t) => {
  const source = scripted({ 'app:1': ['arm64'] });
  const clock = createFakeClock();
  const [first, replica] = [await serve(t, { source, clock }), await serve(t, { source })];
  const next = await createCa('next');
  const trust = `${ca.cert}\n${next.cert}`;
  const ended = new AbortController();
  const body = review({ object: podOf(['app:1']) });
  let answered = 0;
  let moved = 0;

  async function apiServer(): Promise<void> {
    const agent = keepAlive(t, first.webhook.url, { ca: trust, maxSockets: 1 });
    let url = first.webhook.url;
    while (!ended.signal.aborted) {
      const answer = await send(`${url}/mutate?timeout=2s`, {
        method: 'POST',
        agent,
        body,
        headers: { 'content-type': 'application/json' },
      });
      if (admittedOf(answer).required?.[0] !== 'arm64') throw new Error(answer.body);
      answered += 1;
      if (answer.headers.connection !== 'close') continue;
      moved += 1;
      url = replica.webhook.url;
    }
  }
  const clients = Array.from({ length: 6 }, apiServer);
  await until(() => answered > 100, 'load');
  await writeTls(first.tlsDir, await next.issue({ cn: 'webhook', ip: ['127.0.0.1'] }));
  await until(
    () => first.lines.some(({ msg }) => msg === 'a TLS certificate was loaded again'),
    'new certificates',
  );
  const fresh = { agent: false as const, ca: next.cert };
  t.equal((await send(`${first.webhook.url}/healthz`, fresh)).status, 200);
  const then = answered;
  await until(() => answered > then + 100, 'more requests');
  const stopping = first.webhook.stop({ noticeMs: 5000, graceMs: 5000 });
  const atStop = answered;
  await until(() => answered > atStop + 100, 'requests before anyone has noticed');
  t.equal(moved, 0);
  await clock.advance(5000);
  await until(() => moved === clients.length, 'each client has moved to the replica');
  await clock.advanceToNext();
  await stopping;
  ended.abort();
  await t.resolves(Promise.all(clients));
});
