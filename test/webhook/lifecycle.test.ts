import type { Socket } from 'node:net';
import { test } from 'tap';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { createCa } from '../support/certificates.ts';
import { keepAlive, recordingLog, send, until, writeTls } from '../serving/support.ts';
import { ca, clusterOf, factsOf, hanging, podOf, readAnswer, review, scripted, serve } from './support.ts';

function fleetKnowing(known: Fleet['shared']): Fleet {
  return {
    shared: known,
    lookup: () => new Promise(() => undefined),
    pullable: () => ({ able: [], unable: [] }),
    isAvailable: () => true,
    nodeReports: () => new Map(),
    credentialProblems: () => new Map(),
    opinions: () => Promise.resolve([]),
    grouped: () => Promise.resolve(),
    close: () => undefined,
  };
}

test('it takes what the agents know before it is ready', async (t) => {
  const { log } = recordingLog();
  const memory = new FactsMemory({ source: hanging, log });
  const fleet = fleetKnowing(async function* () {
    yield factsOf('docker.io/library/warm:1', ['arm64']);
    yield factsOf('docker.io/library/other:1', ['amd64']);
  });
  const { admitPod, lines } = await serve(t, { memory, fleet });
  t.strictSame((await admitPod(['warm:1'])).required, ['arm64']);
  t.match(lines, [{}, { msg: 'memory is warm', learned: 2, complete: true }]);
});

test('agents that hang or fail hold the start up for a bounded time', async (t) => {
  const cases: [what: string, known: Fleet['shared'], level: string][] = [
    [
      'hang',
      async function* (signal) {
        yield factsOf('docker.io/library/warm:1', ['arm64']);
        await new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      },
      'info',
    ],
    [
      'fail',
      async function* () {
        yield factsOf('docker.io/library/warm:1', ['arm64']);
        throw new Error('agents are away');
      },
      'warn',
    ],
  ];
  for (const [what, known, level] of cases) {
    const { log } = recordingLog();
    const memory = new FactsMemory({ source: hanging, log });
    const { admitPod, lines, webhook } = await serve(t, { memory, fleet: fleetKnowing(known), warmUpMs: 50 });
    t.strictSame((await admitPod(['warm:1'])).required, ['arm64'], what);
    t.equal(webhook.checks['warm-up']?.(), undefined, what);
    t.equal(
      lines.some((line) => line['level'] === 'warn'),
      level === 'warn',
      what,
    );
  }
});

test('a cluster that does not answer at the start is told, and does not keep it from serving', async (t) => {
  const cluster = clusterOf({ ready: () => Promise.reject(new Error('no answer')) });
  const { lines, webhook } = await serve(t, { cluster });
  t.match(lines.at(-1), { level: 'warn', msg: /namespaces count as unlabeled/ });
  t.equal(webhook.checks['warm-up']?.(), undefined);
});

test('it is ready after the warm-up and not while stopping', async (t) => {
  let release: (() => void) | undefined;
  const cluster = clusterOf({ ready: () => new Promise((resolve) => (release = resolve)) });
  const { log } = recordingLog();
  const memory = new FactsMemory({ source: hanging, log });
  const starting = serve(t, { cluster, memory });
  await until('it waits for the cluster', () => release !== undefined);
  release?.();
  const { webhook, agent } = await starting;
  t.equal((await send(`${webhook.url}/readyz`, { agent })).status, 200);
  const stopping = webhook.stop({ noticeMs: 200, graceMs: 1000 });
  t.match(await send(`${webhook.url}/readyz`, { agent }), { status: 503, body: /\[-\]shutdown failed/ });
  t.equal((await send(`${webhook.url}/healthz`, { agent })).status, 200);
  await stopping;
  await t.rejects(send(`${webhook.url}/healthz`, { agent: false, ca: ca.cert }), { code: 'ECONNREFUSED' });
});

test('labels of the namespace count', async (t) => {
  const cluster = clusterOf({
    namespaceLabels: (namespace) => (namespace === 'shop' ? { 'arch.example/placement': 'disabled' } : {}),
  });
  const { admit, admitPod, metric } = await serve(t, {
    cluster,
    inspector: scripted({ 'app:1': ['arm64'] }),
  });
  t.strictSame((await admitPod(['app:1'])).operations, []);
  t.equal(await metric('archwright_admission_skipped_total{reason="disabled-by-namespace"}'), 1);
  t.strictSame((await admit({ object: podOf(['app:1']), namespace: 'other' })).required, ['arm64']);
});

test('under load, certificates change and the webhook stops, and no admission is lost', async (t) => {
  const inspector = scripted({ 'app:1': ['arm64'] });
  const [first, replica] = [
    await serve(t, { inspector, limits: { quietMs: 200 } }),
    await serve(t, { inspector }),
  ];
  const next = await createCa('next');
  const trust = `${ca.cert}\n${next.cert}`;
  const ended = new AbortController();
  const body = review({ object: podOf(['app:1']) });
  let answered = 0;

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
      if (readAnswer(answer).required?.[0] !== 'arm64') throw new Error(answer.body);
      answered += 1;
      if (answer.headers.connection === 'close') url = replica.webhook.url;
    }
  }
  const clients = Array.from({ length: 6 }, apiServer);
  await until('load', () => answered > 100);
  await writeTls(first.tlsDir, await next.issue({ cn: 'webhook', ip: ['127.0.0.1'] }));
  await until('new certificates', () => first.lines.some(({ msg }) => msg === 'TLS files were loaded again'));
  const fresh = { agent: false as const, ca: next.cert };
  t.equal((await send(`${first.webhook.url}/healthz`, fresh)).status, 200);
  const then = answered;
  await until('load goes on', () => answered > then + 100);
  await first.webhook.stop({ noticeMs: 50, graceMs: 5000 });
  ended.abort();
  await t.resolves(Promise.all(clients));
});

test('one connection serves many admissions', async (t) => {
  const { admitPod, agent } = await serve(t, { inspector: scripted({ 'app:1': ['arm64'] }) });
  const ports = new Set<number | undefined>();
  agent.on('free', (socket: Socket) => ports.add(socket.localPort));
  for (let turn = 0; turn < 20; turn += 1) await admitPod(['app:1']);
  t.equal(ports.size, 1);
});
