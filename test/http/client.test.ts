import { createServer, type Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import {
  createHttpClient,
  type HttpRequest,
  maxRetryAfterMs,
  minRetryAfterMs,
  retryAfter,
  isLoginHeader,
} from '../../src/http/client.ts';
import { systemClock } from '../../src/async/clock.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { clientFor, credential, endpointOf, lookUp, startRegistry } from '../support/registry/client.ts';
import { createCa } from '../support/certificates.ts';
import { multiArch } from '../support/registry/content.ts';

import { endpointReach } from '../../src/http/reach/reach.ts';
import { until } from '../support/until.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { listen } from '../support/listen.ts';

async function setUp(t: Test) {
  const registry = await startRegistry(t);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const client = clientFor(t);
  const ask = () => lookUp(client, registry);
  return { registry, client, ask };
}

t.test('one connection serves successive lookups', async (t) => {
  const { registry, client, ask } = await setUp(t);
  await ask();
  registry.faults.add(/manifests/, { kind: 'status', status: 404 }, { times: 1 });
  await t.rejects(ask());
  await ask();
  t.strictSame(
    registry.requests.map(({ connection }) => connection),
    [1, 1, 1],
    'also after an error',
  );
  client.close();
  await until(() => registry.connections === 0, 'every connection is closed');
});

t.test('a request on a stale connection is repeated once', async (t) => {
  const { registry, ask } = await setUp(t);
  await ask();
  registry.faults.add(/manifests/, { kind: 'drop' }, { times: 1 });
  await ask();
  t.equal(registry.requests.length, 3);
  registry.faults.add(/manifests/, { kind: 'drop' });
  await t.rejects(ask(), { code: 'unavailable' }, 'a new connection that closes is an error');
  t.equal(registry.requests.length, 5);
});

t.test('connections are shared only if trust and client certificate are equal', async (t) => {
  const { registry, client } = await setUp(t);
  const ca = await createCa();
  const pair = await ca.issue({ cn: 'node', client: true });
  const known = { ca: [registry.ca], client: [], skipVerify: false };
  for (const tls of [
    known,
    { ...known, ca: [registry.ca, ca.cert] },
    { ...known, skipVerify: true },
    { ...known, client: [{ certificate: pair.cert, key: secret(pair.key) }] },
    { ...known },
  ]) {
    await lookUp(client, endpointOf(registry, { tls }));
  }
  t.strictSame(
    registry.requests.map(({ connection }) => connection),
    [1, 2, 3, 4, 1],
  );
  await lookUp(client, registry, { credentials: [credential('ann', 'password-a')] });
  t.equal(registry.requests.at(-1)?.connection, 1, 'credentials travel with the request, not the connection');
});

t.test('the endpoint gets the client certificate', async (t) => {
  const ca = await createCa();
  const pair = await ca.issue({ cn: 'node-1', client: true });
  const seen: string[] = [];
  const server: Server = createServer(
    { ...(await ca.issue({ cn: 'registry', ip: ['127.0.0.1'] })), ca: ca.cert, requestCert: true },
    (request, response) => {
      seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
      response.writeHead(404).end();
    },
  );
  const port = await listen(server);
  const { client, registry } = await setUp(t);
  t.teardown(() => server.close().closeAllConnections());
  const base = `https://127.0.0.1:${port}/v2`;
  const tls = {
    ca: [ca.cert],
    client: [{ certificate: pair.cert, key: secret(pair.key) }],
    skipVerify: false,
  };
  await t.rejects(lookUp(client, endpointOf(registry, { base, tls })), { code: 'not-found' });
  t.strictSame(seen, ['node-1']);
  const broken = { ...tls, client: [{ certificate: pair.cert, key: secret('no key at all') }] };
  await t.rejects(lookUp(client, endpointOf(registry, { base, tls: broken })), {
    code: 'unavailable',
    message: /client certificate is not usable PEM/,
  });
});

t.test('characters that are not allowed in headers are an error', async (t) => {
  const { registry, client } = await setUp(t);
  for (const header of [
    { name: 'x-team', value: secret('a\r\nhost: evil') },
    { name: 'bad name', value: secret('value') },
  ]) {
    await t.rejects(lookUp(client, endpointOf(registry, { headers: [header] })), { code: 'unavailable' });
  }
  t.strictSame(registry.requests, []);
});

t.test('dialing is limited, and an unknown name is an error', async (t) => {
  const transport = createHttpClient({
    environment: {},
    clock: systemClock,
    limits: { dialMs: 100 },
    resolve: (hostname, _options, callback) => {
      if (hostname === 'nowhere.test') callback(Object.assign(new Error('none'), { code: 'ENOTFOUND' }), []);
    },
  });
  t.teardown(() => transport.close());
  const endpoint = endpointOf({ url: 'https://x', host: 'x', ca: '' } as never);
  const request = (url: string, dialTimeoutMs?: number): HttpRequest => ({
    method: 'GET',
    url: new URL(url),
    headers: {},
    maxBytes: 10,
    tls: endpoint.tls,
    reach: endpointReach(endpoint),
    ...(dialTimeoutMs === undefined ? {} : { dialTimeoutMs }),
  });
  await t.rejects(transport.send(request('https://nowhere.test/'), neverAborted), {
    name: 'TransportError',
    failure: 'resolve',
    where: 'nowhere.test',
  });
  await t.rejects(transport.send(request('https://silent.test/'), neverAborted), {
    name: 'TransportError',
    failure: 'dial-timeout',
    message: /100 ms/,
  });
  await t.rejects(transport.send(request('https://silent.test/', 20), neverAborted), { message: /20 ms/ });
});

const now = Date.parse('2026-11-21T08:00:00Z');

t.test('Retry-After is seconds or a date, within bounds', async (t) => {
  const cases: readonly (readonly [string | undefined, number | undefined])[] = [
    [undefined, undefined],
    ['120', 120_000],
    [' 5 ', 5000],
    ['0', minRetryAfterMs],
    ['99999999999999999999', maxRetryAfterMs],
    ['86400', maxRetryAfterMs],
    ['Sat, 21 Nov 2026 08:01:00 GMT', 60_000],
    ['Fri, 20 Nov 2026 08:00:00 GMT', minRetryAfterMs],
    ['Thu, 01 Jan 1970 00:00:00 GMT', minRetryAfterMs],
    ['Fri, 31 Dec 9999 23:59:59 GMT', maxRetryAfterMs],
    ['', undefined],
    ['soon', undefined],
    ['-1', undefined],
    ['12.5', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
  ];
  for (const [value, expected] of cases) t.equal(retryAfter(value, now), expected, String(value));
});

t.test('headers with credentials are recognized in any spelling', async (t) => {
  for (const name of ['authorization', 'Authorization', 'Proxy-Authorization', 'COOKIE', ' cookie ']) {
    t.ok(isLoginHeader(name), name);
  }
  for (const name of ['', 'x-authorization', 'authorization2', 'cookies', 'x-api-key']) {
    t.notOk(isLoginHeader(name), name);
  }
});
