/**
 * Attack: one repository answers 401 with a realm of the attacker, to get credentials of other repositories.
 */
import t, { type Test } from 'tap';
import { clientFor, credential, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import { createIssuer, type IssuerOptions } from '../../support/registry/tokens.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const users = { ann: 'password-a' };
const ann = credential('ann', 'password-a');

/** A registry with these repositories, and `attacker/app`, which names the attacker's realm. */
async function attacked(t: Test, repositories: readonly string[], options: IssuerOptions = {}) {
  const attacker = await startRegistry(t, { tokens: createIssuer({ users }) });
  const issuer = createIssuer({ users, ...options });
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer } });
  for (const name of repositories) registry.push(name, 'v1', multiArch(['linux/amd64']));
  const headers = { 'www-authenticate': `Bearer realm="${attacker.url}/token",service="s"` };
  registry.faults.add(/attacker/, { kind: 'status', status: 401, headers });
  const client = clientFor(t);
  const ask = (repository: string, credentials = [] as (typeof ann)[], signal = neverAborted) =>
    lookUp(client, registry, { repository, credentials }, signal);
  return { attacker, ask };
}

t.test("an attacker's realm never gets a credential for another repository", async (t) => {
  const { attacker, ask } = await attacked(t, ['victim/app']);
  await t.rejects(ask('attacker/app'));
  t.ok(attacker.requests.length > 0, 'the realm was used for this repository');

  attacker.clearRequests();
  t.equal((await ask('victim/app', [ann])).credential, ann);
  t.same(attacker.requests, []);
});

t.test("an attacker's realm does not replace the realm of other repositories", async (t) => {
  const { attacker, ask } = await attacked(t, ['one/app', 'two/app'], { access: () => true });
  await ask('one/app');
  await t.rejects(ask('attacker/app'));
  attacker.clearRequests();
  await ask('two/app');
  t.same(attacker.requests, []);
});

t.test('a tarpit as realm delays at most one lookup of another repository', async (t) => {
  const { attacker, ask } = await attacked(t, ['two/app'], { access: () => true });
  await t.rejects(ask('attacker/app'));
  attacker.faults.add(/token/, { kind: 'hold' });
  const stop = new AbortController();
  attacker.clearRequests();
  const delayed = ask('two/app', [], stop.signal);
  await attacker.waitFor(() => attacker.requests.length === 1);
  stop.abort();
  await t.rejects(delayed, { code: 'timeout' });
  t.equal((await ask('two/app')).platforms.length, 1);
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
