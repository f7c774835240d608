/**
 * Attack: one repository answers 401 with a realm of the attacker, to get credentials of other repositories.
 */
import t, { type Test } from 'tap';
import { clientFor, credential, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import { createIssuer, type IssuerOptions } from '../../support/registry/tokens.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

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
  t.strictSame(attacker.requests, []);
});

t.test('a realm below a path of the same registry gets no credential of another repository', async (t) => {
  const issuer = createIssuer({ users });
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer } });
  for (const name of ['first/app', 'victim/app']) registry.push(name, 'v1', multiArch(['linux/amd64']));
  const challenge = `Bearer realm="${registry.url}/v2/attacker/token",service="s"`;
  registry.faults.add(/attacker/, {
    kind: 'status',
    status: 401,
    headers: { 'www-authenticate': challenge },
  });
  const client = clientFor(t);
  const ask = (repository: string) => lookUp(client, registry, { repository, credentials: [ann] });
  await t.rejects(ask('attacker/app'));
  t.equal((await ask('first/app')).credential, ann, 'nobody knew the right realm yet');
  registry.faults.add(/v2\/first/, { kind: 'status', status: 401 });
  await t.rejects(ask('first/app'));
  await t.rejects(ask('attacker/app'));
  registry.clearRequests();
  t.equal((await ask('victim/app')).credential, ann);
  t.strictSame(registry.requests.filter(({ path }) => path.includes('attacker')).length, 0);
});

t.test('a repository is challenged once, also for a realm of another host', async (t) => {
  const issuer = createIssuer({ users, access: () => true });
  const tokens = await startRegistry(t, { tokens: issuer });
  const realm = { realm: `${tokens.url}/token` };
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer, ...realm } });
  for (const name of ['one/app', 'two/app']) registry.push(name, 'v1', multiArch(['linux/amd64']));
  const client = clientFor(t);
  for (const [repository, count] of [
    ['one/app', 2],
    ['one/app', 1],
    ['two/app', 2],
  ] as const) {
    registry.clearRequests();
    await lookUp(client, registry, { repository });
    t.strictSame(registry.counts(), { 'GET manifests': count }, repository);
  }
  registry.clearRequests();
  await lookUp(client, registry, { repository: 'one/app', credentials: [ann] });
  t.strictSame(registry.counts(), { 'GET manifests': 1 }, 'the same repository needs no second challenge');
});

t.test('a token server that fails is asked for again', async (t) => {
  const issuer = createIssuer({ users, access: () => true });
  const [old, now] = [await startRegistry(t, { tokens: issuer }), await startRegistry(t, { tokens: issuer })];
  const registry = await startRegistry(t, {
    auth: { kind: 'bearer', issuer, realm: `${now.url}/token` },
  });
  registry.push('one/app', 'v1', multiArch(['linux/amd64']));
  const challenge = { 'www-authenticate': `Bearer realm="${old.url}/token",service="s"` };
  const before = registry.faults.add(/manifests/, { kind: 'status', status: 401, headers: challenge });
  const client = clientFor(t);
  const ask = () => lookUp(client, registry, { repository: 'one/app' });
  await t.rejects(ask());
  before();
  old.faults.add(/token/, { kind: 'status', status: 404 });
  await t.rejects(ask(), 'its realm is gone');
  like(t, await ask(), { platforms: { length: 1 } });
});
