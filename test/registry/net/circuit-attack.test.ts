/**
 * Attack: a hostile registry, or one repository of a shared registry, opens the circuit of another registry.
 */
import t, { type Test } from 'tap';
import { clientFor, credential, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import type { Fault } from '../../support/registry/faults.ts';
import { createIssuer } from '../../support/registry/tokens.ts';

async function setUp(t: Test) {
  const [victim, attacker] = [await startRegistry(t), await startRegistry(t)];
  for (const name of ['library/app', 'one/app', 'two/app', 'three/app', 'four/app']) {
    for (const registry of [victim, attacker]) registry.push(name, 'v1', multiArch(['linux/amd64']));
  }
  return { victim, attacker, client: clientFor(t) };
}

const pause: Fault = { kind: 'status', status: 503, headers: { 'retry-after': '900' } };
const failures: readonly (readonly [string, Fault])[] = [
  ['503 with Retry-After', pause],
  ['429 with Retry-After', { ...pause, status: 429 }],
  ['500', { kind: 'status', status: 500 }],
  ['closed connections', { kind: 'drop' }],
  ['cut responses', { kind: 'short', missing: 1 }],
];

for (const [name, fault] of failures) {
  t.test(`failures behind a redirect do not open the circuit of the target: ${name}`, async (t) => {
    const { victim, attacker, client } = await setUp(t);
    victim.faults.add(/failing/, fault);
    const to = `${victim.url}/v2/failing`;
    attacker.faults.add(/one|two|three/, { kind: 'redirect', to });
    for (const repository of ['one/app', 'two/app', 'three/app']) {
      for (let n = 0; n < 5; n += 1) await t.rejects(lookUp(client, attacker, { repository }));
    }
    t.ok(victim.requests.length > 0, 'the redirect was followed');
    t.equal((await lookUp(client, victim)).platforms.length, 1);
    const sent = victim.requests.length;
    await t.rejects(lookUp(client, attacker, { repository: 'one/app' }), { message: /gets no requests/ });
    t.equal(victim.requests.length, sent, "the attacker's redirects are not followed any more");
    t.equal((await lookUp(client, attacker, { repository: 'four/app' })).platforms.length, 1);
  });

  t.test(`failures of a realm do not open the circuit of its host: ${name}`, async (t) => {
    const { victim, attacker, client } = await setUp(t);
    victim.faults.add(/failing/, fault);
    const headers = { 'www-authenticate': `Bearer realm="${victim.url}/failing"` };
    attacker.faults.add(/manifests/, { kind: 'status', status: 401, headers });
    for (const repository of ['one/app', 'two/app', 'three/app']) {
      for (let n = 0; n < 5; n += 1) await t.rejects(lookUp(client, attacker, { repository }));
    }
    t.ok(victim.requests.length > 0, 'the realm was used');
    t.equal((await lookUp(client, victim)).platforms.length, 1);
  });

  t.test(
    `failures of one repository open its own circuit, of several that of the registry: ${name}`,
    async (t) => {
      const { victim, client } = await setUp(t);
      victim.faults.add(/one/, fault);
      for (let n = 0; n < 9; n += 1) await t.rejects(lookUp(client, victim, { repository: 'one/app' }));
      t.ok(victim.requests.length < 9, 'this repository gets no more requests');
      t.equal((await lookUp(client, victim)).platforms.length, 1);
      victim.faults.add(/two|three|four/, fault);
      for (const repository of ['two/app', 'three/app', 'four/app', 'two/app', 'three/app']) {
        await t.rejects(lookUp(client, victim, { repository }));
      }
      await t.rejects(lookUp(client, victim), { message: /gets no requests/ }, 'several repositories failed');
    },
  );
}

t.test('timeouts of one repository open its own circuit, of several that of the registry', async (t) => {
  const { victim } = await setUp(t);
  const client = clientFor(t, { limits: { headerMs: 500 } });
  victim.faults.add(/one|two|three|four/, { kind: 'hold' });
  const hang = (repository: string) =>
    t.rejects(lookUp(client, victim, { repository }), { message: /longer/ });
  await Promise.all(Array.from({ length: 5 }, () => hang('one/app')));
  const stopped = { message: /gets no requests/ };
  await t.rejects(lookUp(client, victim, { repository: 'one/app' }), stopped);
  t.equal((await lookUp(client, victim)).platforms.length, 1);
  await Promise.all(['two', 'two', 'three', 'three', 'four'].map((each) => hang(`${each}/app`)));
  await t.rejects(lookUp(client, victim), stopped, 'several repositories never answered');
});

t.test('a realm that fails for one registry still serves another', async (t) => {
  const issuer = createIssuer({ users: { ann: 'password-a' } });
  const tokens = await startRegistry(t, { tokens: issuer });
  const realm = `${tokens.url}/token`;
  const registry = await startRegistry(t, { auth: { kind: 'bearer', issuer, realm } });
  const other = await startRegistry(t, { auth: { kind: 'bearer', issuer, realm } });
  for (const each of [registry, other]) each.push('library/app', 'v1', multiArch(['linux/amd64']));
  const credentials = [credential('ann', 'password-a')];
  const client = clientFor(t);
  const remove = tokens.faults.add(/token/, pause);
  await t.rejects(lookUp(client, registry, { credentials }));
  await t.rejects(lookUp(client, registry, { credentials }), { message: /gets no requests/ });
  remove();
  t.equal((await lookUp(client, other, { credentials })).platforms.length, 1);
});
