/** The attack: one path of a registry answers 401 with a realm of the attacker, to get credentials for other repositories. */
import t from 'tap';
import { clientFor, credential, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import { createIssuer } from '../../support/registry/tokens.ts';

const users = { ann: 'password-a' };
const ann = credential('ann', 'password-a');

t.test("an attacker's realm never gets a credential for another repository", async (t) => {
  const attacker = await startRegistry(t, { tokens: createIssuer({ users }) });
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer: createIssuer({ users }) } });
  registry.push('victim/app', 'v1', multiArch(['linux/amd64']));
  const realm = `Bearer realm="${attacker.url}/token",service="s"`;
  registry.faults.add(/attacker/, { kind: 'status', status: 401, headers: { 'www-authenticate': realm } });
  const client = clientFor(t);
  await t.rejects(lookUp(client, registry, { repository: 'attacker/app' }));
  t.ok(attacker.requests.length > 0, 'the bait worked: the realm of this repository was used');

  attacker.clearRequests();
  const result = await lookUp(client, registry, { repository: 'victim/app', credentials: [ann] });
  t.equal(result.credential, ann);
  t.same(attacker.requests, []);
});

t.test("an attacker's realm does not replace the realm of other repositories", async (t) => {
  const tokens = createIssuer({ users, access: () => true });
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer: tokens } });
  const attacker = await startRegistry(t, { tokens: createIssuer({ users }) });
  for (const name of ['one/app', 'two/app']) registry.push(name, 'v1', multiArch(['linux/amd64']));
  const realm = `Bearer realm="${attacker.url}/token",service="s"`;
  registry.faults.add(/attacker/, { kind: 'status', status: 401, headers: { 'www-authenticate': realm } });
  const client = clientFor(t);
  await lookUp(client, registry, { repository: 'one/app' });
  await t.rejects(lookUp(client, registry, { repository: 'attacker/app' }));
  attacker.clearRequests();
  await lookUp(client, registry, { repository: 'two/app' });
  t.same(attacker.requests, []);
});

t.test('a tarpit as realm delays one lookup of another repository at most', async (t) => {
  const tokens = createIssuer({ users, access: () => true });
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer: tokens } });
  const attacker = await startRegistry(t, { tokens: createIssuer({ users }) });
  registry.push('two/app', 'v1', multiArch(['linux/amd64']));
  const realm = `Bearer realm="${attacker.url}/token",service="s"`;
  registry.faults.add(/attacker/, { kind: 'status', status: 401, headers: { 'www-authenticate': realm } });
  const client = clientFor(t);
  await t.rejects(lookUp(client, registry, { repository: 'attacker/app' }));
  attacker.faults.add(/token/, { kind: 'hold' });
  const stop = new AbortController();
  attacker.clearRequests();
  const delayed = lookUp(client, registry, { repository: 'two/app' }, stop.signal);
  await attacker.waitFor(() => attacker.requests.length === 1);
  stop.abort();
  await t.rejects(delayed, { code: 'timeout' });
  t.equal((await lookUp(client, registry, { repository: 'two/app' })).platforms.length, 1);
  t.equal(attacker.requests.length, 1);
});

t.test('a foreign realm is used again for anonymous requests to other repositories', async (t) => {
  const issuer = createIssuer({ users, access: () => true });
  const tokens = await startRegistry(t, { tokens: issuer });
  const registry = await startRegistry(t, {
    auth: { kind: 'bearer', issuer, realm: `${tokens.url}/token` },
  });
  for (const name of ['one/app', 'two/app']) registry.push(name, 'v1', multiArch(['linux/amd64']));
  const client = clientFor(t);
  await lookUp(client, registry, { repository: 'one/app' });
  registry.clearRequests();
  await lookUp(client, registry, { repository: 'two/app' });
  t.same(registry.counts(), { 'GET manifests': 1 });

  registry.clearRequests();
  await lookUp(client, registry, { repository: 'one/app', credentials: [ann] });
  t.same(registry.counts(), { 'GET manifests': 1 }, 'the same repository needs no second challenge');
});
