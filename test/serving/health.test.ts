import { test } from 'tap';
import { probe, startHealth } from '../../src/serving/health.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createCa } from '../support/certificates.ts';
import { send, tlsDirectory } from './support.ts';
import { recordingLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

test('a probe lists all checks', async (t) => {
  t.strictSame(probe({}), { status: 200, text: 'ok\n' });
  t.strictSame(probe({ memory: () => undefined, agents: () => 'none found' }), {
    status: 503,
    text: '[+]memory ok\n[-]agents failed: none found\nnot ready\n',
  });
});

test('the health server has probes and metrics', async (t) => {
  const metrics = createMetrics();
  metrics.counter({ name: 'things_total', type: 'counter', help: 'Things.' }).inc(3);
  let ready = false;
  const server = await startHealth({
    listen: '127.0.0.1:0',
    ready: { warm: () => (ready ? undefined : 'not yet') },
    metrics,
    log: recordingLog().log,
  });
  t.teardown(() => server.drain(0));

  like(t, await send(`${server.url}/healthz`), { status: 200, body: 'ok\n' });
  like(t, await send(`${server.url}/readyz?verbose`), { status: 503, body: /\[-\]warm failed: not yet/ });
  ready = true;
  like(t, await send(`${server.url}/readyz`), { status: 200, body: '[+]warm ok\nok\n' });
  like(t, await send(`${server.url}/metrics`), {
    status: 200,
    body: /^things_total 3$/m,
    headers: { 'content-type': /^text\/plain; version=0.0.4/ },
  });
  like(t, await send(`${server.url}/healthz`, { method: 'HEAD' }), { status: 200, body: '' });
  like(t, await send(`${server.url}/else`), { status: 404 });
  like(t, await send(`${server.url}/healthz`, { method: 'POST' }), {
    status: 405,
    headers: { allow: 'GET, HEAD' },
  });
});

test('the health server can use TLS', async (t) => {
  const ca = await createCa();
  const tlsDir = await tlsDirectory(t, await ca.issue({ cn: 'a', dns: ['a'], server: true }));
  const { log } = recordingLog();
  const server = await startHealth({
    listen: '127.0.0.1:0',
    tls: tlsDir,
    ready: {},
    metrics: createMetrics(),
    log,
  });
  t.teardown(() => server.drain(0));
  t.match(server.url, /^https:/);
  like(t, await send(`${server.url}/readyz`, { ca: ca.cert, servername: 'a', agent: false }), {
    status: 200,
  });
  await t.rejects(send(`${server.url.replace('https', 'http')}/readyz`, { agent: false }));
});

test('a failed scrape does not end the process', async (t) => {
  const metrics = createMetrics();
  const { log, lines } = recordingLog();
  metrics.beforeScrape(() => {
    throw new Error('broken gauge');
  });
  const server = await startHealth({ listen: '127.0.0.1:0', ready: {}, metrics, log });
  t.teardown(() => server.drain(0));
  const signal = AbortSignal.timeout(30_000);
  await t.rejects(send(`${server.url}/metrics`, { signal }), { code: 'ECONNRESET' });
  like(t, await send(`${server.url}/healthz`), { status: 200 });
  like(t, lines, [{ level: 'error' }]);
});
