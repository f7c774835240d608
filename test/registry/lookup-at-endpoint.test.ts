import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import t, { type Test } from 'tap';
import {
  createDefaultEndpoints,
  originEndpoint,
  type Endpoint,
} from '../../src/registry/endpoints/endpoint.ts';
import { objectUrl } from '../../src/registry/lookup-at-endpoint.ts';
import {
  clientFor,
  credential,
  endpointOf,
  lookUp,
  startRegistry,
  targetOf,
  testClient,
  tracing,
} from '../support/registry/client.ts';
import { document, image, mediaTypes, multiArch, type Content } from '../support/registry/content.ts';
import { type TestRegistryOptions } from '../support/registry/server.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { createCa } from '../support/certificates.ts';
import { listen } from '../support/listen.ts';
import { neverAborted } from '../support/never-aborted.ts';

const users = { ann: 'password-a' };
const ann = credential('ann', 'password-a');

async function setUp(t: Test, options: TestRegistryOptions = {}, content: Content = image('linux/amd64')) {
  const registry = await startRegistry(t, options);
  registry.push('library/app', 'v1', content);
  const client = clientFor(t);
  return { registry, client };
}

for (const [name, options] of [
  ['https', {}],
  ['http', { tls: false }],
] as const) {
  t.test(`a registry on this machine with ${name} is reached as containerd does`, async (t) => {
    const { registry, client } = await setUp(t, {
      ...options,
      auth: { kind: 'bearer', issuer: createIssuer({ users }) },
    });
    const endpoints = await createDefaultEndpoints().endpoints(targetOf(registry.host));
    const { trace, attempts } = tracing();
    const answer = await lookUp(client, endpoints, { credentials: [ann], trace });
    t.equal(answer.platforms.length, 1);
    t.equal(answer.credential, ann);
    t.strictSame(registry.counts(), { 'GET manifests': 2, 'POST token': 1, 'GET blobs': 1 });
    const problems = attempts.flatMap(({ problem }) => problem ?? []);
    t.strictSame(
      problems,
      name === 'https' ? [] : ['the server does not speak TLS'],
      'https is tried once before http',
    );
  });
}

t.test('without httpFallback http is not tried', async (t) => {
  const { registry, client } = await setUp(t, { tls: false });
  const endpoint = endpointOf(registry, { base: `https://${registry.host}/v2` });
  await t.rejects(lookUp(client, endpoint), { code: 'unavailable', message: /does not speak TLS/ });
  t.strictSame(registry.requests, []);
});

t.test('after a certificate error http is not tried', async (t) => {
  const { registry, client } = await setUp(t);
  const tls = { ca: [], client: [], skipVerify: false };
  const { trace, attempts } = tracing();
  await t.rejects(lookUp(client, endpointOf(registry, { httpFallback: true, tls }), { trace }), {
    message: /certificate is not trusted/,
  });
  t.equal(attempts.length, 1);
});

t.test('after a TLS handshake timeout http is tried', async (t) => {
  const silent = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (data) => {
      // The first byte of a TLS client is 0x16.
      if (data[0] !== 0x16) socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
    });
  });
  const port = await listen(silent);
  const { registry } = await setUp(t);
  const client = testClient({ limits: { tlsMs: 200 } });
  t.teardown(() => {
    client.close();
    silent.close();
  });
  const host = `127.0.0.1:${port}`;
  const endpoint = endpointOf(registry, { base: `https://${host}/v2`, host, httpFallback: true });
  const { trace, lines } = tracing();
  await t.rejects(lookUp(client, endpoint, { trace }), { code: 'not-found' });
  t.strictSame(lines, ['GET manifest the TLS handshake took longer than 200 ms', 'GET manifest 404']);
});

t.test('after a refused connection http is tried only if the host has no port', async (t) => {
  const { registry, client } = await setUp(t);
  const closed = endpointOf(registry, { base: 'https://127.0.0.1:1/v2', httpFallback: true });
  const { trace, attempts } = tracing();
  await t.rejects(lookUp(client, closed, { trace }), {
    code: 'unavailable',
    message: /connection was refused/,
  });
  t.equal(attempts.length, 1);
  const portless = endpointOf(registry, { base: 'https://127.0.0.255/v2', httpFallback: true });
  await t.rejects(lookUp(client, portless, { trace }), { code: 'unavailable' });
  t.strictSame(
    attempts.slice(1).map(({ url }) => new URL(url).protocol),
    ['https:', 'http:'],
  );
});

t.test('invalid repositories and references are not sent', async (t) => {
  const { registry, client } = await setUp(t);
  for (const name of [{ repository: 'library/../../secret' }, { reference: '../../blobs/x' }])
    await t.rejects(lookUp(client, registry, name), { code: 'not-found' });
  t.strictSame(registry.requests, []);
});

t.test('a digest is verified with its own algorithm', async (t) => {
  const content = multiArch(['linux/amd64']);
  const { registry, client } = await setUp(t, {}, content);
  const sha512 = `sha512:${createHash('sha512').update(content.bytes).digest('hex')}`;
  const announce = (digest: string) =>
    registry.faults.add(/manifests/, { kind: 'headers', headers: { 'docker-content-digest': digest } });
  announce(sha512);
  t.equal((await lookUp(client, registry)).digest, sha512);
  announce(`sha512:${'0'.repeat(128)}`);
  await t.rejects(lookUp(client, registry), { code: 'digest-mismatch' });
  announce('nonsense');
  t.equal((await lookUp(client, registry)).digest, content.digest);
});

t.test('a lookup by digest accepts only that digest', async (t) => {
  const content = multiArch(['linux/amd64']);
  const { registry, client } = await setUp(t, {}, content);
  const other = document(mediaTypes.ociIndex, { manifests: [] });
  registry.faults.add(/manifests/, { kind: 'body', body: other.bytes.toString() });
  await t.rejects(lookUp(client, registry, { reference: content.digest }), { code: 'digest-mismatch' });
});

t.test('a failed HEAD is not followed by GET', async (t) => {
  for (const [status, code] of [
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'not-found'],
    [429, 'rate-limited'],
    [500, 'unavailable'],
  ] as const) {
    const content = multiArch(['linux/amd64']);
    const { registry, client } = await setUp(t, {}, content);
    registry.faults.add(/manifests/, { kind: 'status', status }, { method: 'HEAD' });
    const lookup = lookUp(client, registry, { knownDigest: content.digest });
    await t.rejects(lookup, { code }, String(status));
    t.strictSame(registry.counts(), { 'HEAD manifests': 1 });
  }
});

t.test('if HEAD and GET disagree, the content of GET applies', async (t) => {
  const [old, fresh] = [multiArch(['linux/amd64']), multiArch(['linux/arm64'])];
  const { registry, client } = await setUp(t, {}, fresh);
  const headers = { 'docker-content-digest': `sha256:${'1'.repeat(64)}` };
  registry.faults.add(/manifests/, { kind: 'headers', headers }, { method: 'HEAD' });
  const answer = await lookUp(client, registry, { knownDigest: old.digest });
  t.equal(answer.digest, fresh.digest, 'the digest of the bytes');
});

t.test(
  'attack: the registry of an image is this machine, a port of the node, or a metadata service',
  async (t) => {
    const addresses: Readonly<Record<string, string>> = {
      'loopback.test': '127.0.0.1',
      'metadata.test': '169.254.169.254',
    };
    const registry = await startRegistry(t, { tls: await createCa(), names: Object.keys(addresses) });
    const client = clientFor(t, {
      resolve: (name, _options, callback) => callback(null, [{ address: addresses[name] ?? '', family: 4 }]),
    });
    const tls = { ca: [registry.ca], client: [], skipVerify: false };
    for (const host of [
      ...Object.keys(addresses).map((name) => `${name}:${registry.port}`),
      '127.0.0.1:10250',
      '0xa9fea9fe:80',
    ])
      await t.rejects(lookUp(client, originEndpoint(host, tls)), { code: 'forbidden' }, host);
    t.equal(registry.connections, 0);
  },
);

t.test('attack: a name resolves to another address after the check', async (t) => {
  const registry = await startRegistry(t, { tls: await createCa(), names: ['rebind.test'] });
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const addresses = ['127.0.0.1', '169.254.169.254'];
  const client = clientFor(t, {
    resolve: (_name, _options, callback) => callback(null, [{ address: addresses.shift() ?? '', family: 4 }]),
  });
  const endpoint = endpointOf(registry, { base: `https://rebind.test:${registry.port}/v2` });
  t.equal((await lookUp(client, endpoint)).platforms.length, 1);
  t.equal(addresses.length, 1, 'one resolution for the connection');
  registry.faults.add(/./, { kind: 'close-after-headers' }, { times: 1 });
  await t.rejects(lookUp(client, endpoint), { code: 'unavailable' });
  await t.rejects(lookUp(client, endpoint), { code: 'forbidden', message: /metadata address/ });
});

t.test('URLs are built below the base of the endpoint, for valid names only', async (t) => {
  const endpoint = originEndpoint('registry.corp', { ca: [], client: [], skipVerify: false });
  const digest = `sha256:${'a'.repeat(64)}`;
  const urlOf = (changes: Partial<Endpoint>, repository = 'app', scheme?: 'http:') =>
    objectUrl({ ...endpoint, ...changes }, repository, 'manifests', 'v1', scheme)?.href;
  t.equal(urlOf({}), 'https://registry.corp/v2/app/manifests/v1');
  const blob = objectUrl(endpoint, 'a/b-c/d_e', 'blobs', digest);
  t.equal(blob?.href, `https://registry.corp/v2/a/b-c/d_e/blobs/${digest}`);
  t.equal(urlOf({ base: 'http://proxy:5000/a//b/v2/' }), 'http://proxy:5000/a/b/v2/app/manifests/v1');
  t.equal(urlOf({ base: 'https://proxy' }), 'https://proxy/app/manifests/v1');
  const mirrored = urlOf({ namespace: 'registry.corp:5000', namespaceParameter: true });
  t.equal(mirrored, 'https://registry.corp/v2/app/manifests/v1?ns=registry.corp%3A5000');
  t.equal(urlOf({}, 'app', 'http:'), 'http://registry.corp/v2/app/manifests/v1');
  for (const bad of ['', '..', '.', 'a/../b', 'a//b', '/a', 'a b', 'a?b', 'a#b', 'a%2fb', 'a\\b', 'ä']) {
    t.equal(urlOf({}, bad), undefined, bad);
  }
});

const content = image('linux/amd64');

t.test('tags are listed page by page, with a token, also from a mirror', async (t) => {
  const users = { ann: 'password-of-ann' };
  const registry = await startRegistry(t, {
    auth: { kind: 'bearer', issuer: createIssuer({ users }) },
    tagsPerPage: 2,
  });
  for (const tag of ['1', '2', '3', '4', '5']) registry.push('library/app', tag, content);
  registry.push('library/app', 'mirrored', content, 'docker.io');
  const client = clientFor(t);
  const credentials = [credential('ann', 'password-of-ann')];
  const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials };
  t.strictSame(await client.tags(lookup, neverAborted), {
    tags: ['1', '2', '3', '4', '5'],
    isComplete: true,
  });
  await t.rejects(client.tags({ ...lookup, credentials: [] }, neverAborted), { code: 'unauthorized' });
  const mirror = endpointOf(registry, { namespace: 'docker.io', namespaceParameter: true });
  t.strictSame((await client.tags({ ...lookup, endpoints: [mirror] }, neverAborted)).tags, ['mirrored']);
  const noResolver = endpointOf(registry, { resolve: false });
  await t.rejects(client.tags({ ...lookup, endpoints: [noResolver] }, neverAborted), { code: 'not-found' });
});

t.test('malformed tags, oversized pages and foreign links are ignored or refused', async (t) => {
  const registry = await startRegistry(t);
  const other = await startRegistry(t);
  const client = clientFor(t);
  const tags = async (body: string, link?: string): Promise<readonly string[]> => {
    registry.faults.clear();
    registry.faults.add(/tags/, { kind: 'status', status: 200, body, headers: link ? { link } : {} });
    registry.clearRequests();
    const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials: [] };
    return (await client.tags(lookup, neverAborted)).tags;
  };
  t.strictSame(await tags('{"tags":null}'), []);
  t.strictSame(await tags('{"tags":["1.2",3,"../../x","<b>","-a","",null,"ok_1"]}'), ['1.2', 'ok_1']);
  await t.rejects(tags('[]'), { name: 'RegistryError' });
  await t.rejects(tags('{'), { name: 'RegistryError' });
  await t.rejects(tags(`{"tags":["${'a'.repeat(300_000)}"]}`), { code: 'too-large' });

  await tags('{"tags":["1"]}', `<${other.url}/v2/library/app/tags/list?last=a>; rel="next"`);
  t.strictSame(
    registry.requests.map(({ query }) => query.get('last')),
    [null, 'a'],
    'a repeated page ends the list',
  );
  t.strictSame(other.requests, [], 'no request to another host');
});

t.test('a list with a next page that cannot be followed is not complete', async (t) => {
  const registry = await startRegistry(t);
  const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials: [] };
  for (const next of ['n=50&next_page=abc', 'last=']) {
    const headers = { link: `</v2/library/app/tags/list?${next}>; rel="next"` };
    registry.faults.clear();
    registry.faults.add(/tags/, { kind: 'status', status: 200, body: '{"tags":["1"]}', headers });
    const { tags, isComplete } = await clientFor(t).tags(lookup, neverAborted);
    t.strictSame([tags[0], isComplete], ['1', false], next);
  }
});

t.test('at most ten pages are read', async (t) => {
  const registry = await startRegistry(t, { tagsPerPage: 1 });
  for (let index = 0; index < 20; index += 1) registry.push('library/app', `1.${10 + index}`, content);
  const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials: [] };
  const { tags, isComplete } = await clientFor(t).tags(lookup, neverAborted);
  t.strictSame([tags.length, isComplete], [10, false]);
  t.equal(registry.requests.length, 10);
});
