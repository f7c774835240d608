import t, { type Test } from 'tap';
import type { MatchedCredential } from '../../../src/credentials/credential.ts';
import type { ManifestLookup } from '../../../src/registry/manifest-lookup.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { clientFor, credential, endpointOf, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import { type TestRegistry, type TestRegistryOptions } from '../../support/registry/server.ts';
import { createIssuer, type IssuerOptions } from '../../support/registry/tokens.ts';

const users = { ann: 'password-a', bea: 'password-b' };
const ann = credential('ann', 'password-a');
const bea = credential('bea', 'password-b');

async function start(t: Test, options: TestRegistryOptions): Promise<TestRegistry> {
  const registry = await startRegistry(t, options);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  registry.push('library/other', 'v1', multiArch(['linux/arm64']));
  return registry;
}

async function withTokens(t: Test, options: IssuerOptions = {}) {
  const issuer = createIssuer({ users, ...options });
  const registry = await start(t, { auth: { kind: 'bearer', issuer } });
  const client = clientFor(t);
  /** Looks up with the credential of ann. */
  const ask = (changes: Partial<ManifestLookup> = {}) =>
    lookUp(client, registry, { credentials: [ann], ...changes });
  return { issuer, registry, client, ask };
}

t.test('a token is requested once and sent with later requests', async (t) => {
  const { registry, ask } = await withTokens(t);
  const answer = await ask();
  t.equal(answer.credential, ann);
  t.strictSame(registry.counts(), { 'GET manifests': 2, 'POST token': 1 });
  t.match(registry.requests[1]?.body, /^grant_type=password&username=ann&password=password-a&service=/);
  t.match(registry.requests[1]?.body, /scope=repository%3Alibrary%2Fapp%3Apull&client_id=archwright$/);

  registry.clearRequests();
  await ask();
  t.strictSame(registry.counts(), { 'GET manifests': 1 });

  registry.clearRequests();
  await ask({ repository: 'library/other' });
  t.strictSame(
    registry.counts(),
    { 'POST token': 1, 'GET manifests': 2 },
    'another repository is challenged itself',
  );
});

for (const [status, fallsBack] of [
  [400, true],
  [401, true],
  [404, true],
  [405, true],
  [403, false],
  [500, false],
  [307, false],
] as const) {
  t.test(`a ${status} to POST is ${fallsBack ? '' : 'not '}followed by GET`, async (t) => {
    const { registry, ask } = await withTokens(t);
    const headers = status === 307 ? { location: '/elsewhere' } : {};
    registry.faults.add(/token/, { kind: 'status', status, headers }, { method: 'POST' });
    const answer = ask();
    if (fallsBack) await answer;
    else await t.rejects(answer, { code: status === 500 ? 'unavailable' : 'unauthorized' });
    t.equal(registry.counts()['GET token'], fallsBack ? 1 : undefined);
    t.equal(registry.counts()['GET elsewhere'], undefined);
    t.equal(registry.counts()['POST elsewhere'], undefined);
  });
}

t.test('each credential gets its own token', async (t) => {
  const { registry, issuer, client, ask } = await withTokens(t, {
    access: (user, repository) => user === 'ann' || (user === 'bea' && repository === 'library/other'),
  });
  await ask();
  await t.rejects(ask({ credentials: [bea] }), { code: 'unauthorized' });
  await t.rejects(lookUp(client, registry), { code: 'unauthorized' });
  await ask({ credentials: [bea, ann] });
  const bearers = registry.requests.filter(({ authorization }) => authorization?.scheme === 'bearer');
  t.strictSame(
    bearers.map(({ authorization }) => authorization?.user),
    ['ann', 'bea', '', 'bea', 'ann'],
  );
  t.equal(issuer.issued, 4, 'only the rejected tokens are requested again');
});

t.test('a realm that resolves to a forbidden address gets no request', async (t) => {
  const realm = 'https://auth.test/token';
  const registry = await start(t, { auth: { kind: 'bearer', issuer: createIssuer({ users }), realm } });
  const client = clientFor(t, {
    resolve: (_name, _options, callback) => callback(null, [{ address: '169.254.169.254', family: 4 }]),
  });
  await t.rejects(lookUp(client, registry, { credentials: [ann] }), {
    code: 'forbidden',
    message: /auth\.test.*metadata address/,
  });
});

t.test('attack: a realm of one repository gets no credential for another', async (t) => {
  const attacker = await startRegistry(t, { tokens: createIssuer({ users }) });
  const { registry, client } = await withTokens(t);
  const headers = { 'www-authenticate': `Bearer realm="${attacker.url}/token",service="s"` };
  registry.faults.add(/attacker/, { kind: 'status', status: 401, headers });
  await t.rejects(lookUp(client, registry, { repository: 'attacker/app' }));
  t.ok(attacker.requests.length > 0, 'the realm was used for this repository');
  attacker.clearRequests();
  t.equal((await lookUp(client, registry, { credentials: [ann] })).credential, ann);
  t.strictSame(attacker.requests, []);
});

t.test('a realm that fails is asked for again', async (t) => {
  const issuer = createIssuer({ users, access: () => true });
  const old = await startRegistry(t, { tokens: issuer });
  const { registry, client } = await withTokens(t, { access: () => true });
  const headers = { 'www-authenticate': `Bearer realm="${old.url}/token",service="s"` };
  const before = registry.faults.add(/manifests/, { kind: 'status', status: 401, headers });
  await t.rejects(lookUp(client, registry));
  before();
  old.faults.add(/token/, { kind: 'status', status: 404 });
  await t.rejects(lookUp(client, registry), 'its realm is gone');
  t.equal((await lookUp(client, registry)).platforms.length, 1);
});

t.test('a revoked token is replaced once', async (t) => {
  const { registry, issuer, ask } = await withTokens(t, { lifetimeSeconds: 3600 });
  await ask();
  issuer.revoke();
  registry.clearRequests();
  await ask();
  t.strictSame(registry.counts(), { 'GET manifests': 2, 'POST token': 1 });
});

t.test('a fresh token that is rejected is not requested again', async (t) => {
  const { registry, ask } = await withTokens(t, { access: () => false });
  for (const expected of [
    { 'GET manifests': 2, 'POST token': 1 },
    { 'GET manifests': 1, 'POST token': 1 },
  ]) {
    registry.clearRequests();
    await t.rejects(ask(), {
      code: 'unauthorized',
      message:
        /401 for library\/app with the credential docker-config registry\.test .*: ask for a new password/,
    });
    t.strictSame(registry.counts(), expected);
  }
});

t.test('a wrong password is rejected by the token server', async (t) => {
  const { registry, ask } = await withTokens(t);
  const wrong = credential('ann', 'password-x');
  await t.rejects(ask({ credentials: [wrong] }), {
    code: 'unauthorized',
    message: /the token server answered 401: ask for a new password/,
  });
  t.strictSame(registry.counts(), { 'GET manifests': 1, 'POST token': 1, 'GET token': 1 });
});

t.test('malformed and failed responses of a token server are typed errors', async (t) => {
  const answer = (body: string, status = 200) => ({ kind: 'status', status, body }) as const;
  for (const [name, fault, code, message] of [
    ['no token', answer('{}'), 'unavailable', /no token: no token/],
    ['garbage', answer('<html>'), 'unavailable', /not JSON/],
    ['too much', { kind: 'endless' } as const, 'too-large', /65536/],
    ['429', answer('', 429), 'rate-limited', /429/],
    ['503', answer('', 503), 'unavailable', /503/],
    ['closing', { kind: 'drop' } as const, 'unavailable', /closed/],
  ] as const) {
    const { registry, ask } = await withTokens(t);
    registry.faults.add(/token/, fault);
    await t.rejects(ask(), { code, message }, name);
  }
});

t.test('without a user name, only a credential of containerd is a refresh token', async (t) => {
  const cases: readonly (readonly [MatchedCredential['source'], string])[] = [
    ['docker-config', 'GET'],
    ['pull-secret', 'GET'],
    ['containerd', 'POST'],
  ];
  for (const [source, method] of cases) {
    const { registry, ask } = await withTokens(t);
    const identity = credential('', 'identity-token', { source });
    await t.rejects(ask({ credentials: [identity] }), { code: 'unauthorized' });
    t.equal(registry.requests[1]?.method, method, source);
    if (method === 'POST')
      t.match(registry.requests[1]?.body, 'grant_type=refresh_token&refresh_token=identity-token');
    else t.equal(registry.requests[1]?.headers.authorization, undefined);
  }
});

t.test('Basic needs user name and password', async (t) => {
  for (const half of [credential('ann', ''), credential('', 'password-a', { source: 'containerd' })]) {
    const registry = await start(t, { auth: { kind: 'basic', users } });
    await t.rejects(lookUp(clientFor(t), registry, { credentials: [half] }), { code: 'unauthorized' });
    t.strictSame(registry.counts(), { 'GET manifests': 1 });
  }
});

t.test("an endpoint's headers go to it, and its token headers to its token server", async (t) => {
  const { registry } = await withTokens(t);
  const headers = [
    { name: 'X-Team', value: secret('platform-team') },
    { name: 'Authorization', value: secret('Basic c3RhdGljOnN0YXRpYw==') },
  ];
  const endpoint = endpointOf(registry, { headers, tokenHeaders: headers });
  await lookUp(clientFor(t), endpoint, { credentials: [ann] });
  t.ok(registry.requests.every((request) => request.headers['x-team'] === 'platform-team'));
  t.strictSame(
    registry.requests.map(({ authorization }) => authorization?.scheme),
    ['basic', 'basic', 'bearer'],
    'a static Authorization until there is a token',
  );
  registry.clearRequests();
  await lookUp(clientFor(t), endpointOf(registry, { headers }), { credentials: [ann] });
  const teams = registry.requests.map((request) => request.headers['x-team']);
  t.strictSame(teams, ['platform-team', undefined, 'platform-team'], 'without token headers it gets none');
});

t.test('a static Authorization header is sent to the token server of the same host', async (t) => {
  const { registry, client } = await withTokens(t);
  const login = (password: string) => [
    { name: 'Authorization', value: secret(`Basic ${btoa(`ann:${password}`)}`) },
  ];
  const good = endpointOf(registry, { headers: login('password-a'), tokenHeaders: login('password-a') });
  t.equal((await lookUp(clientFor(t), good)).credential, undefined);
  // The same client again: its cached token must not serve the endpoint without the header.
  t.equal((await lookUp(client, good)).platforms.length, 1);
  await t.rejects(lookUp(client, registry), { code: 'unauthorized' });
  const bad = endpointOf(registry, { headers: login('wrong'), tokenHeaders: login('wrong') });
  await t.rejects(lookUp(client, bad), { code: 'unauthorized' });
});
