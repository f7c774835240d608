/**
 * Attack: a registry responds with the challenge of another one, so that the agent gets a token there with
 * its own credential, and presents it to the attacker.
 */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { directory, dockerConfig, write } from '../cmd/world.ts';
import { createCa } from '../support/certificates.ts';
import { multiArch } from '../support/registry/content.ts';
import { startTestRegistry } from '../support/registry/server.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { openNode } from './support.ts';
import { like } from '../support/like.ts';

/** A registry with a private image, an attacker that copies its challenge, and a node with logins. */
async function world(t: Test, logins: (good: string, evil: string) => Readonly<Record<string, string>>) {
  const ca = await createCa();
  const issuer = createIssuer({ users: { ann: 'password-of-ann', bob: 'password-of-bob' } });
  const good = await startTestRegistry({ tls: ca, auth: { kind: 'bearer', issuer } });
  const auth = { kind: 'bearer', issuer, realm: `${good.url}/token`, service: good.host } as const;
  const evil = await startTestRegistry({ tls: ca, auth });
  t.teardown(() => Promise.all([good.close(), evil.close()]));
  good.push('private/app', 'v1', multiArch(['linux/amd64']));
  const challenge = `Bearer realm="${good.url}/token",service="${good.host}",scope="repository:private/app:pull"`;
  evil.faults.add(/./, { kind: 'status', status: 401, headers: { 'www-authenticate': challenge } });
  const dir = directory(t);
  const auths = Object.entries(logins(good.host, evil.host)).map(
    ([host, user]) => JSON.parse(dockerConfig(host, user, `password-of-${user}`)) as { auths: object },
  );
  const config = { auths: Object.assign({}, ...auths.map(({ auths }) => auths)) as object };
  write(dir, { 'config.json': JSON.stringify(config), 'ca.pem': ca.cert });
  const node = await openNode(t, {
    dockerConfigPathCandidates: join(dir, 'config.json'),
    caFiles: join(dir, 'ca.pem'),
  });
  return { good, evil, node };
}

t.test('without its own credential, the attacker gets at most an anonymous token', async (t) => {
  const { good, evil, node } = await world(t, (good) => ({ [good]: 'ann' }));
  like(t, await node.inspect(`${good.host}/private/app:v1`), { platforms: [{ architecture: 'amd64' }] });
  t.ok(
    good.requests.some(({ authorization }) => authorization?.user === 'ann'),
    'the login works at its own registry',
  );
  good.clearRequests();
  for (const image of ['private/app:v1', 'other/app:v1']) {
    like(t, await node.inspect(`${evil.host}/${image}`), { error: { code: 'unauthorized' } });
  }
  t.ok(evil.requests.length > 0);
  t.notOk([...evil.requests, ...good.requests].some(({ authorization }) => authorization?.user === 'ann'));
  t.notMatch(
    good.requests.map(({ body, query }) => `${body} ${query.toString()}`).join(),
    /password-of-ann/,
    'the token server of the other registry does not see it',
  );
});

t.test('with its own credential, the attacker gets only the rights of that credential', async (t) => {
  const { good, evil, node } = await world(t, (good, evil) => ({ [good]: 'ann', [evil]: 'bob' }));
  await node.inspect(`${good.host}/private/app:v1`);
  await node.inspect(`${evil.host}/private/app:v1`);
  const tokens = evil.requests.flatMap(({ authorization }) => authorization?.user ?? []);
  t.ok(
    tokens.every((user) => user === 'bob' || user === ''),
    tokens.join(),
  );
  const theirs = new Set(evil.requests.flatMap(({ authorization }) => authorization?.token ?? []));
  const ours = good.requests.filter(({ path }) => path !== '/token');
  t.notOk(
    ours.some(({ authorization }) => theirs.has(authorization?.token ?? 'none')),
    'separate tokens',
  );
});
