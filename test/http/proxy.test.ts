/** The client behind a proxy: tunnels for https, plain requests for http. */
import t, { type Test } from 'tap';
import { bypasses, describeProxies, proxyFor } from '../../src/http/proxy/proxy.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { like } from '../support/like.ts';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createCa } from '../support/certificates.ts';
import { clientFor, credential, endpointOf, lookUp, startRegistry } from '../support/registry/client.ts';
import { multiArch } from '../support/registry/content.ts';
import { startTestProxy, type TestProxyOptions } from '../support/registry/proxy.ts';
import type { TestRegistryOptions } from '../support/registry/server.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { until } from '../support/until.ts';
import { listen } from '../support/listen.ts';

const https = new URL('https://registry.corp/v2/');
const http = new URL('http://registry.corp/v2/');

t.test('the variable depends on the scheme; upper case comes first', async (t) => {
  const environment = {
    HTTPS_PROXY: 'http://one:3128',
    https_proxy: 'http://two:3128',
    http_proxy: 'three:8080',
  };
  t.equal(proxyFor(https, environment)?.url.href, 'http://one:3128/');
  t.equal(proxyFor(http, environment)?.url.href, 'http://three:8080/', 'without a scheme it is http');
  t.equal(proxyFor(https, { HTTPS_PROXY: '', https_proxy: 'http://two:3128' })?.url.host, 'two:3128');
  t.equal(proxyFor(https, { HTTP_PROXY: 'http://one:3128' }), undefined, 'no proxy for the other scheme');
  t.equal(proxyFor(http, { HTTP_PROXY: 'http://one', REQUEST_METHOD: 'GET' }), undefined, 'httpoxy');
  t.equal(proxyFor(https, {}), undefined);
});

t.test('credentials of the proxy are a secret, not part of its URL', async (t) => {
  const environment = { HTTPS_PROXY: 'http://ann:p%40ss-word@proxy.corp:3128' };
  const proxy = proxyFor(https, environment);
  like(t, describeProxies(environment), [{ where: 'HTTPS_PROXY', what: 'proxy.corp:3128, with a login' }]);
  t.equal(proxy?.url.href, 'http://proxy.corp:3128/');
  t.equal(reveal(proxy?.authorization ?? ({} as never)), `Basic ${btoa('ann:p@ss-word')}`);
  t.notMatch(JSON.stringify(proxy), /p@ss|p%40ss/);
  t.equal(proxyFor(https, { HTTPS_PROXY: 'http://proxy.corp' })?.authorization, undefined);
});

t.test('a malformed variable is an error that does not quote it', async (t) => {
  const values = ['http://', 'socks5://ann:password@proxy:1080', 'http://ann:password@a b'];
  // Found by fuzzing: a malformed percent escape.
  for (const value of [...values, 'http://a%zz:password@proxy', 'http://ann:password%@proxy']) {
    try {
      proxyFor(https, { HTTPS_PROXY: value });
      t.fail(value);
    } catch (error) {
      like(t, error, { name: 'ProxyError', message: /^HTTPS_PROXY/ });
      t.notMatch(String(error), /password/);
    }
  }
});

t.test('NO_PROXY matches as in Go', async (t) => {
  const cases = [
    ['https://registry.corp/', '', false],
    ['https://registry.corp/', '*', true],
    ['https://registry.corp/', 'registry.corp', true],
    ['https://registry.corp./', 'registry.corp', true],
    ['https://registry.corp/', ' other , REGISTRY.corp ', true],
    ['https://a.registry.corp/', 'registry.corp', true],
    ['https://aregistry.corp/', 'registry.corp', false],
    ['https://registry.corp/', '.registry.corp', false],
    ['https://a.registry.corp/', '.registry.corp', true],
    ['https://a.registry.corp/', '*.registry.corp', true],
    ['https://registry.corp/', '*.registry.corp', false],
    ['https://registry.corp/', 'registry.corp:443', true],
    ['https://registry.corp:5000/', 'registry.corp:443', false],
    ['http://registry.corp/', 'registry.corp:80', true],
    ['https://10.1.2.3/', '10.0.0.0/8', true],
    ['https://11.1.2.3/', '10.0.0.0/8', false],
    ['https://10.1.2.3/', '10.0.0.0/33', false],
    ['https://10.1.2.3/', '10.0.0.0/', false],
    ['https://registry.corp/', '10.0.0.0/8', false],
    ['https://10.1.2.3/', '10.1.2.3', true],
    ['https://10.1.2.3:5000/', '10.1.2.3:5000', true],
    ['https://10.1.2.3:5001/', '10.1.2.3:5000', false],
    ['https://10.1.2.3/', '.3', false],
    ['https://[fd00::1]/', 'fd00::/8', true],
    ['https://[fd00::1]/', 'fd00::1', true],
    ['https://[fd00::1]:5000/', '[fd00::1]:5000', true],
    ['https://[fd00::1]:5001/', '[fd00::1]:5000', false],
    ['https://localhost:5000/', '', true],
    ['https://127.0.0.1:5000/', '', true],
    ['https://127.9.9.9/', '', true],
    ['https://[::1]:5000/', '', true],
    ['https://localhost.corp/', '', false],
  ] as const;
  for (const [target, list, expected] of cases) {
    t.equal(bypasses(new URL(target), list), expected, `${target} NO_PROXY=${list}`);
  }
  t.equal(proxyFor(https, { HTTPS_PROXY: 'http://one', NO_PROXY: '.corp' }), undefined);
  t.equal(proxyFor(https, { HTTPS_PROXY: 'http://one', no_proxy: 'corp' }), undefined);
});

/** The client behind a proxy: tunnels for https, plain requests for http. */

async function setUp(
  t: Test,
  options: TestRegistryOptions = {},
  proxyOptions: Partial<TestProxyOptions> = {},
  limits: { dialMs?: number; totalMs?: number } = {},
) {
  const registry = await startRegistry(t, { names: ['registry.test'], ...options });
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const proxy = await startTestProxy({ to: { host: '127.0.0.1', port: registry.port }, ...proxyOptions });
  const address = proxy.url.replace('//', '//ann:proxy-password@');
  const client = clientFor(t, {
    environment: { HTTPS_PROXY: address, HTTP_PROXY: address },
    limits,
    resolve: (_name, _options, callback) => callback(new Error('nothing is resolved here'), []),
  });
  t.teardown(() => proxy.close());
  const scheme = registry.ca === '' ? 'http' : 'https';
  const endpoint = endpointOf(registry, { base: `${scheme}://registry.test/v2`, host: 'registry.test' });
  return { registry, proxy, client, endpoint };
}

const authorization = `Basic ${btoa('ann:proxy-password')}`;

t.test('https uses a tunnel, which is reused', async (t) => {
  const auth = { kind: 'basic', users: { ann: 'password-a' } } as const;
  const { registry, proxy, client, endpoint } = await setUp(t, { auth });
  for (let count = 0; count < 2; count += 1) {
    const credentials = [credential('ann', 'password-a')];
    const answer = await lookUp(client, endpoint, { credentials });
    t.equal(answer.platforms.length, 1);
  }
  t.strictSame(proxy.requests, [{ line: 'CONNECT registry.test:443', authorization }]);
  t.ok(registry.requests.every(({ headers }) => headers['proxy-authorization'] === undefined));
  t.equal(new Set(registry.requests.map(({ connection }) => connection)).size, 1);
});

t.test('the certificate of the server behind the tunnel is verified', async (t) => {
  const { registry, client, endpoint } = await setUp(t);
  const stranger = { ...endpoint, tls: { ca: [], client: [], skipVerify: false } };
  await t.rejects(lookUp(client, stranger), { code: 'unavailable', message: /certificate/ });
  const other = { ...endpoint, base: 'https://other.test/v2' };
  await t.rejects(lookUp(client, other), { code: 'unavailable', message: /ALTNAME/ });
  t.strictSame(registry.requests, []);
});

t.test('if the server behind the tunnel does not speak TLS, http is tried', async (t) => {
  const { proxy, client, endpoint } = await setUp(t, { tls: false });
  for (const host of ['registry.test', 'registry.test:5000']) {
    proxy.requests.length = 0;
    const lax = { ...endpoint, base: `https://${host}/v2`, host, httpFallback: true };
    const answer = await lookUp(client, lax);
    t.equal(answer.platforms.length, 1);
    const [tunnel, plain] = proxy.requests;
    t.equal(tunnel?.line, `CONNECT ${host.includes(':') ? host : `${host}:443`}`);
    t.equal(plain?.line, `GET http://${host}/v2/library/app/manifests/v1`);
  }
});

t.test('http requests go to the proxy with the full URL', async (t) => {
  const { registry, proxy, client, endpoint } = await setUp(t, { tls: false });
  t.equal((await lookUp(client, endpoint)).platforms.length, 1);
  t.strictSame(proxy.requests, [
    { line: 'GET http://registry.test/v2/library/app/manifests/v1', authorization },
  ]);
  t.equal(registry.requests[0]?.headers.host, 'registry.test');
});

t.test('the address of a proxy is not that of the registry, which counts as public', async (t) => {
  for (const options of [{ tls: false }, {}] as const) {
    const auth = { kind: 'bearer', issuer: createIssuer({ users: { ann: 'password-a' } }) } as const;
    const { registry, client, endpoint } = await setUp(t, { auth, ...options });
    const looking = lookUp(client, endpoint, { credentials: [credential('ann', 'password-a')] });
    await t.rejects(looking, { message: /realm.*127\.0\.0\.1/ }, 'its realm is on loopback');
    t.equal(registry.requests.length, 1, 'no token is requested');
  }
});

for (const [scheme, options, line] of [
  ['http', { tls: false }, 'GET http://registry.test/v2/library/app/manifests/v1'],
  ['https', {}, 'CONNECT registry.test:443'],
] as const) {
  t.test(`${scheme} goes through a proxy that speaks TLS, whose certificate is verified`, async (t) => {
    const ca = await createCa();
    const tls = await ca.issue({ cn: 'proxy', dns: ['localhost'], ip: ['127.0.0.1'] });
    const { proxy, endpoint } = await setUp(t, options, { tls });
    const caFiles = [join(t.testdir({ 'ca.pem': ca.cert }), 'ca.pem')];
    for (const host of ['localhost', '127.0.0.1']) {
      proxy.requests.length = 0;
      const address = proxy.url.replace('127.0.0.1', host);
      const environment = { HTTP_PROXY: address, HTTPS_PROXY: address };
      t.equal((await lookUp(clientFor(t, { environment, caFiles }), endpoint)).platforms.length, 1, host);
      t.strictSame(proxy.requests, [{ line, authorization: undefined }]);
      const stranger = clientFor(t, { environment });
      await t.rejects(lookUp(stranger, endpoint), { code: 'unavailable' });
      t.equal(proxy.requests.length, 1, 'an unknown certificate');
    }
  });
}

t.test('loopback bypasses the proxy', async (t) => {
  const { registry, proxy, client } = await setUp(t);
  await lookUp(client, registry);
  t.strictSame(proxy.requests, []);
});

t.test('forbidden addresses are refused through a proxy too', async (t) => {
  const { proxy, client, endpoint } = await setUp(t);
  const metadata = { ...endpoint, base: 'https://169.254.169.254/v2', origin: 'default' };
  await t.rejects(lookUp(client, metadata), { code: 'forbidden' });
  t.strictSame(proxy.requests, []);
});

for (const [name, connectAnswer, code, message] of [
  ['refuses', 'HTTP/1.1 407 Authentication Required\r\n\r\n', 'unavailable', /the proxy .* answered 407/],
  ['does not speak HTTP', 'SSH-2.0-x\r\n\r\n', 'unavailable', /something that is not an HTTP response/],
  ['closes the connection', 'HTTP/1.1 200', 'unavailable', /closed the connection/],
  [
    'sends endless headers',
    `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(40_000)}`,
    'unavailable',
    /not an HTTP response/,
  ],
  ['stays silent', '', 'timeout', /took longer than|in time/],
] as const) {
  t.test(`an error names the proxy that ${name}`, async (t) => {
    const limits = connectAnswer === '' ? { dialMs: 300 } : {};
    const { proxy, client, endpoint } = await setUp(t, {}, { connectAnswer }, limits);
    const error: unknown = await lookUp(client, endpoint).catch((e: unknown) => e);
    like(t, error, { code, message });
    t.notMatch(JSON.stringify([String(error), error]), /proxy-password/);
    t.equal(proxy.requests.length, 1);
  });
}

t.test('an unreachable or unsupported proxy is an error', async (t) => {
  const { registry } = await setUp(t);
  const endpoint = endpointOf(registry, { base: 'https://registry.test/v2' });
  for (const [HTTPS_PROXY, message] of [
    ['http://127.0.0.1:1', /the proxy 127\.0\.0\.1:1 cannot be reached/],
    ['socks5://127.0.0.1:1', /not supported/],
  ] as const) {
    const client = clientFor(t, { environment: { HTTPS_PROXY } });
    await t.rejects(lookUp(client, endpoint), { code: 'unavailable', message });
  }
});

t.test('an abort closes the tunnel that is being opened', async (t) => {
  const { proxy, client, endpoint } = await setUp(t, {}, { connectAnswer: '' });
  const controller = new AbortController();
  const lookup = lookUp(client, endpoint, {}, controller.signal);
  await until(() => proxy.requests.length === 1);
  controller.abort();
  await t.rejects(lookup, { code: 'timeout' });
  await until(() => proxy.connections === 0);
  t.equal(proxy.connections, 0);
});

t.test('each endpoint has its own time limit for opening a tunnel', async (t) => {
  const { client, endpoint, proxy } = await setUp(t, {}, { connectAnswer: '' }, { totalMs: 3000 });
  const controller = new AbortController();
  const patient = lookUp(client, { ...endpoint, dialTimeoutMs: 60_000 }, {}, controller.signal);
  await until(() => proxy.requests.length === 1);
  const impatient = lookUp(client, { ...endpoint, dialTimeoutMs: 50 });
  await t.rejects(impatient, { code: 'timeout', message: /the proxy did not answer in time/ });
  controller.abort();
  await t.rejects(patient, { code: 'timeout' });
});

t.test('TLS inside a tunnel has a time limit', async (t) => {
  const silent = createServer((socket) => void socket.on('error', () => socket.destroy()).resume());
  const port = await listen(silent);
  t.teardown(() => silent.close());
  const to = { host: '127.0.0.1', port };
  const { client, endpoint, proxy } = await setUp(t, {}, { to }, { dialMs: 100, totalMs: 3000 });
  await t.rejects(lookUp(client, endpoint), { code: 'timeout', message: /the proxy did not answer in time/ });
  await until(() => proxy.connections === 0);
});
