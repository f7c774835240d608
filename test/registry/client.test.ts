import t, { type Test } from 'tap';
import {
  clientFor,
  credential,
  endpointOf,
  lookUp,
  lookupOf,
  startRegistry,
  tracing,
} from '../support/registry/client.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { helmChart, image, mediaTypes, multiArch, schema1 } from '../support/registry/content.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';
import { secret } from '../../src/telemetry/secret.ts';
import type { TestRegistryOptions } from '../support/registry/server.ts';

const both = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64' },
];

t.test('each kind of content needs a known number of requests', async (t) => {
  const registry = await startRegistry(t);
  const pair = ['linux/amd64', 'linux/arm64'];
  const linux = (architecture: string) => [{ os: 'linux', architecture }];
  const one = { 'GET manifests': 1 };
  const two = { 'GET manifests': 1, 'GET blobs': 1 };
  const cases = [
    ['index', multiArch(pair, { attestations: true }), both, one],
    ['list', multiArch(pair, { flavor: 'docker' }), both, one],
    ['single', image('linux/arm/v7'), [{ os: 'linux', architecture: 'arm', variant: 'v7' }], two],
    ['docker single', image('linux/s390x', { flavor: 'docker' }), linux('s390x'), two],
    ['schema 1', schema1('ppc64le'), linux('ppc64le'), one],
  ] as const;
  const client = clientFor(t);
  for (const [name, content, platforms, counts] of cases) {
    registry.clearRequests();
    registry.push('library/app', 'v1', content);
    const answer = await lookUp(client, registry);
    t.strictSame(answer.platforms, platforms, name);
    const { digest, mediaType } = content;
    like(t, answer, { digest, mediaType, kind: 'image', unchanged: false, credential: undefined }, name);
    t.strictSame(registry.counts(), counts, name);
  }
  registry.clearRequests();
  registry.push('library/app', 'v1', helmChart());
  const chart = await lookUp(client, registry);
  like(t, chart, { kind: 'artifact', platforms: [], mediaType: mediaTypes.ociManifest });
  t.strictSame(registry.counts(), { 'GET manifests': 1 });
  const headers = { accept: /index\.v1\+json.*\*\/\*$/, 'accept-encoding': 'identity' };
  like(t, registry.requests[0]?.headers, headers);
});

t.test('an unchanged digest costs one HEAD', async (t) => {
  const registry = await startRegistry(t);
  const content = multiArch(['linux/amd64']);
  registry.push('library/app', 'v1', content);
  const client = clientFor(t);
  const held = await lookUp(client, registry, { knownDigest: content.digest });
  like(t, held, { unchanged: true, digest: content.digest, platforms: [] });
  t.strictSame(registry.counts(), { 'HEAD manifests': 1 });

  registry.clearRequests();
  const changed = multiArch(['linux/amd64', 'linux/arm64']);
  registry.push('library/app', 'v1', changed);
  const fresh = await lookUp(client, registry, { knownDigest: content.digest });
  like(t, fresh, { unchanged: false, digest: changed.digest, platforms: both });
  t.strictSame(registry.counts(), { 'HEAD manifests': 1, 'GET manifests': 1 });
});

for (const [name, fault] of [
  ['refuses HEAD', { kind: 'status', status: 405 }],
  ['does not know HEAD', { kind: 'status', status: 501 }],
  ['sends no digest header', { kind: 'headers', headers: { 'docker-content-digest': '' } }],
] as const) {
  t.test(`a registry that ${name} gets a GET, and the digests are compared`, async (t) => {
    const registry = await startRegistry(t);
    const content = image('linux/amd64');
    registry.push('library/app', 'v1', content);
    registry.faults.add(/manifests/, fault, fault.kind === 'status' ? { method: 'HEAD' } : {});
    const answer = await lookUp(clientFor(t), registry, { knownDigest: content.digest });
    like(t, answer, { unchanged: true, digest: content.digest });
    t.strictSame(registry.counts(), { 'HEAD manifests': 1, 'GET manifests': 1 }, 'no config is read');
  });
}

t.test('the mirror is tried first, then the origin', async (t) => {
  const [mirror, origin] = [await startRegistry(t), await startRegistry(t)];
  const content = image('linux/arm64');
  const viaMirror = endpointOf(mirror, { namespace: 'docker.io', namespaceParameter: true });
  origin.push('library/app', 'v1', content);
  const client = clientFor(t);
  const answer = await lookUp(client, [viaMirror, origin]);
  t.equal(answer.endpoint.host, origin.host);
  t.equal(mirror.requests[0]?.query.get('ns'), 'docker.io');
  t.strictSame(mirror.counts(), { 'GET manifests': 1 });

  mirror.push('library/app', 'v1', content, 'docker.io');
  origin.clearRequests();
  const again = await lookUp(client, [viaMirror, origin]);
  t.equal(again.endpoint.host, mirror.host);
  t.strictSame(origin.counts(), {});
  t.ok(
    mirror.requests.every(({ query }) => query.get('ns') === 'docker.io'),
    'blobs too',
  );
});

t.test('a mirror without the resolve capability gets only requests by digest', async (t) => {
  const [mirror, origin] = [await startRegistry(t), await startRegistry(t)];
  const content = multiArch(['linux/amd64']);
  for (const registry of [mirror, origin]) registry.push('library/app', 'v1', content);
  const client = clientFor(t);
  const endpoints = [endpointOf(mirror, { resolve: false }), endpointOf(origin)];
  t.equal((await lookUp(client, endpoints)).endpoint.host, origin.host);
  t.strictSame(mirror.counts(), {});
  const byDigest = lookupOf(endpoints, { reference: content.digest });
  t.equal((await client.lookup(byDigest, neverAborted)).endpoint.host, mirror.host);
  await t.rejects(lookUp(client, endpointOf(mirror, { resolve: false })), { code: 'not-found', where: '' });
  await t.rejects(lookUp(client, endpointOf(mirror, { pull: false })), { code: 'not-found' });
});

t.test('credentials are tried in order, each once, without an anonymous attempt at the end', async (t) => {
  const registry = await startRegistry(t, { auth: { kind: 'basic', users: { bea: 'password-b' } } });
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const [ann, bea, cid] = [
    credential('ann', 'password-a'),
    credential('bea', 'password-b'),
    credential('cid', 'password-c'),
  ];
  const client = clientFor(t);
  const answer = await lookUp(client, registry, { credentials: [ann, ann, bea, cid] });
  t.equal(answer.credential, bea);
  t.strictSame(
    registry.requests.map(({ authorization }) => authorization?.user),
    [undefined, 'ann', 'bea'],
    'the challenge is requested once',
  );

  registry.clearRequests();
  const wrong = lookUp(client, registry, { credentials: [ann, cid] });
  await t.rejects(wrong, {
    code: 'unauthorized',
    where: registry.host,
    message: `${registry.host}: 401 for library/app with the credential docker-config registry.test (/var/lib/kubelet/config.json): ask for a new password`,
  });
  t.strictSame(
    registry.requests.map(({ authorization }) => authorization?.user),
    ['ann', 'cid'],
  );
});

t.test('an endpoint that accepts no credentials gets one request for all of them', async (t) => {
  const users = { ann: 'password-a', bea: 'password-b' };
  const mirror = await startRegistry(t, { auth: { kind: 'basic', users } });
  const origin = await startRegistry(t, { auth: { kind: 'basic', users: { bea: 'password-b' } } });
  for (const registry of [mirror, origin]) registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const endpoints = [endpointOf(mirror, { acceptsCredentials: false }), endpointOf(origin)];
  const credentials = [credential('ann', 'password-a'), credential('bea', 'password-b')];
  const answer = await lookUp(clientFor(t), endpoints, { credentials });
  t.equal(answer.endpoint.host, origin.host);
  t.equal(answer.credential, credentials[1]);
  t.strictSame(mirror.counts(), { 'GET manifests': 1 });
  t.equal(mirror.requests[0]?.headers.authorization, undefined);
});

t.test('the trace lists each request without secrets', async (t) => {
  const issuer = createIssuer({ users: { ann: 'password-a' } });
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer } });
  registry.push('library/app', 'v1', image('linux/amd64'));
  const { trace, lines, attempts } = tracing();
  const credentials = [credential('ann', 'password-a')];
  await lookUp(clientFor(t), registry, { credentials, trace });
  t.strictSame(lines, ['GET manifest 401', 'POST token 200', 'GET manifest 200', 'GET config 200']);
  t.equal(attempts[0]?.credential, 'anonymous');
  t.equal(attempts[1]?.credential, 'docker-config registry.test (/var/lib/kubelet/config.json)');
  t.equal(attempts[1]?.url, `${registry.url}/token`);
  t.ok(attempts.every(({ durationMs }) => durationMs >= 0));
  t.notMatch(JSON.stringify(attempts), /password|token-issuer/);
});

t.test(
  'an endpoint that the runtime refuses gets no request; another serves the image under its name',
  async (t) => {
    const [blocked, mirror] = [await startRegistry(t), await startRegistry(t)];
    mirror.push('mirrored/app', 'v1', image('linux/arm64'));
    const refusal = new RegistryError('forbidden', blocked.host, 'it is blocked in registries.conf');
    const endpoints = [endpointOf(blocked, { refusal }), endpointOf(mirror, { repository: 'mirrored/app' })];
    const { endpoint } = await lookUp(clientFor(t), endpoints);
    t.equal(endpoint.host, mirror.host);
    t.strictSame((await clientFor(t).tags({ ...lookupOf(endpoints) }, neverAborted)).tags, ['v1']);
    t.equal(blocked.requests.length, 0);
    await t.rejects(lookUp(clientFor(t), endpoints.slice(0, 1)), refusal);
  },
);

async function start(t: Test, options: TestRegistryOptions = {}) {
  const registry = await startRegistry(t, { tls: false, ...options });
  registry.push('library/app', 'v1', image('linux/arm64'));
  return registry;
}

const own = credential('own', 'secret1', { source: 'containerd', key: 'host', id: 'own' });
const users = { own: 'secret1', kubelet: 'secret2' };

t.test('an own credential is not used if there is another one, even an empty one', async (t) => {
  const registry = await start(t, { auth: { kind: 'basic', users } });
  const endpoint = endpointOf(registry, { ownCredential: own });
  for (const other of [credential('kubelet', 'wrong'), credential('', '')]) {
    await t.rejects(lookUp(clientFor(t), endpoint, { credentials: [other] }), { code: 'unauthorized' });
  }
  const mirror = endpointOf(registry, { ownCredential: own, acceptsCredentials: false });
  await t.rejects(lookUp(clientFor(t), mirror, { credentials: [credential('kubelet', 'secret2')] }), {
    code: 'unauthorized',
  });
  t.notOk(registry.requests.some(({ headers }) => headers.authorization === `Basic ${btoa('own:secret1')}`));
});

t.test(
  'with CRI-O, an own credential stands in for credentials that are not accepted, or have no user name',
  async (t) => {
    const registry = await start(t, { auth: { kind: 'basic', users } });
    const mirror = endpointOf(registry, { ownCredential: own, prefersOwn: true, acceptsCredentials: false });
    const origin = { ...mirror, acceptsCredentials: true };
    for (const [endpoint, other, used] of [
      [mirror, credential('kubelet', 'secret2'), 'containerd'],
      [origin, credential('kubelet', 'secret2'), 'docker-config'],
      [origin, credential('', 'secret2'), 'containerd'],
    ] as const) {
      const answer = await lookUp(clientFor(t), endpoint, { credentials: [other] });
      t.equal(answer.credential?.source, used);
    }
  },
);

t.test('an endpoint without its own credential fails only where that would be used', async (t) => {
  const registry = await start(t, { auth: { kind: 'basic', users } });
  const ownFailure = new RegistryError('unavailable', 'auth.json', 'auth.json: it is not JSON');
  const endpoint = endpointOf(registry, { ownFailure, prefersOwn: true });
  await t.rejects(lookUp(clientFor(t), endpoint), ownFailure);
  t.equal(registry.requests.length, 0);
  await lookUp(clientFor(t), endpoint, { credentials: [credential('kubelet', 'secret2')] });
});

t.test('an own credential is not sent to the next endpoint', async (t) => {
  const [first, second] = [
    await start(t, { auth: { kind: 'basic', users: {} } }),
    await start(t, { auth: { kind: 'basic', users } }),
  ];
  const endpoints = [endpointOf(first, { ownCredential: own }), endpointOf(second)];
  await t.rejects(lookUp(clientFor(t), endpoints), { code: 'unauthorized' });
  t.ok(first.requests.some(({ headers }) => headers.authorization !== undefined));
  t.notOk(second.requests.some(({ headers }) => headers.authorization !== undefined));
});

t.test(
  'a token server on another host gets the token headers without Authorization and Cookie, and no other headers',
  async (t) => {
    const issuer = createIssuer({ users: {} });
    const tokens = await start(t, { tokens: issuer });
    const registry = await start(t, { auth: { kind: 'bearer', issuer, realm: `${tokens.url}/token` } });
    const header = (name: string) => ({ name, value: secret('topsecret1') });
    const endpoint = endpointOf(registry, {
      headers: [header('X-Key'), header('X-Other')],
      tokenHeaders: [header('X-Key'), header('Authorization'), header('Cookie')],
    });
    await lookUp(clientFor(t), endpoint).catch(() => undefined);
    const headers = tokens.requests.map(({ headers: sent }) =>
      [sent['x-key'], sent['x-other'], sent.authorization, sent.cookie].join(),
    );
    t.ok(headers.length > 0);
    t.strictSame([...new Set(headers)], ['topsecret1,,,']);
  },
);
