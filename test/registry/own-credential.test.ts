/** Credentials and headers that belong to one endpoint. */
import t, { type Test } from 'tap';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { clientFor, credential, endpointOf, lookUp, startRegistry } from '../support/registry/client.ts';
import { image } from '../support/registry/content.ts';
import { type TestRegistryOptions } from '../support/registry/server.ts';
import { createIssuer } from '../support/registry/tokens.ts';

async function start(t: Test, options: TestRegistryOptions = {}) {
  const registry = await startRegistry(t, { tls: false, ...options });
  registry.push('library/app', 'v1', image('linux/arm64'));
  return registry;
}

const own = credential('own', 'secret1', { source: 'containerd', key: 'host', id: 'own' });
const users = { own: 'secret1', kubelet: 'secret2' };

t.test("an endpoint's own credential is used if there is no other", async (t) => {
  const registry = await start(t, { auth: { kind: 'basic', users } });
  const endpoint = endpointOf(registry, { ownCredential: own });
  const answer = await lookUp(clientFor(t), endpoint);
  t.equal(answer.credential?.source, 'containerd');
});

t.test('it is not used if there is another credential, even an empty one', async (t) => {
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

t.test('with CRI-O, it stands in for credentials that are not accepted, or have no user name', async (t) => {
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
});

t.test('an endpoint without its own credential fails only where that would be used', async (t) => {
  const registry = await start(t, { auth: { kind: 'basic', users } });
  const ownFailure = new RegistryError('unavailable', 'auth.json', 'auth.json: it is not JSON');
  const endpoint = endpointOf(registry, { ownFailure, prefersOwn: true });
  await t.rejects(lookUp(clientFor(t), endpoint), ownFailure);
  t.equal(registry.requests.length, 0);
  await lookUp(clientFor(t), endpoint, { credentials: [credential('kubelet', 'secret2')] });
});

t.test('it is not sent to the next endpoint', async (t) => {
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
