/** Attack: a hostile registry, or a prefix of a shared registry, stops the requests to others. */
import t, { type Test } from 'tap';
import { createFakeClock } from '../../support/fake-clock.ts';
import { clientFor, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import type { Fault } from '../../support/registry/faults.ts';
import type { TestRegistryOptions } from '../../support/registry/server.ts';
import { createIssuer } from '../../support/registry/tokens.ts';

async function setUp(t: Test, options: TestRegistryOptions = {}) {
  const [victim, attacker] = [await startRegistry(t, options), await startRegistry(t)];
  for (const name of ['library/app', 'one/app', 'two/app', 'three/app', 'four/app']) {
    for (const registry of [victim, attacker]) registry.push(name, 'v1', multiArch(['linux/amd64']));
  }
  const clock = createFakeClock();
  return { victim, attacker, clock, client: clientFor(t, { clock }) };
}

const pause: Fault = { kind: 'status', status: 503, headers: { 'retry-after': '900' } };
const failures: readonly (readonly [string, Fault])[] = [
  ['503 with Retry-After', pause],
  ['429 with Retry-After', { ...pause, status: 429 }],
  ['closed connections', { kind: 'drop' }],
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
    await t.rejects(lookUp(client, attacker, { repository: 'one/app' }), { message: /are paused for/ });
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
    victim.faults.add(/attacker.*manifests/, { kind: 'status', status: 401, headers });
    for (let n = 0; n < 9; n += 1)
      await t.rejects(lookUp(client, victim, { repository: `attacker/app${n}` }));
    // The first anonymous request to other repositories uses the same realm.
    await lookUp(client, victim).catch(() => undefined);
    t.equal((await lookUp(client, victim)).platforms.length, 1, 'a prefix of its own named the realm');
  });

  t.test(
    `failures of one prefix stop it, of several all prefixes for a minute at most: ${name}`,
    async (t) => {
      const { victim, clock, client } = await setUp(t);
      const isStopped = async (repository: string): Promise<boolean> => {
        const sent = victim.requests.length;
        await lookUp(client, victim, { repository }).catch(() => undefined);
        return victim.requests.length === sent;
      };
      victim.faults.add(/one/, fault);
      for (let n = 0; n < 6; n += 1) await t.rejects(lookUp(client, victim, { repository: `one/app${n}` }));
      t.ok(await isStopped('one/app'));
      t.notOk(await isStopped('library/app'), 'after six repositories of one prefix failed');
      victim.faults.add(/two|three|four/, fault);
      for (const prefix of ['two', 'three', 'four']) await isStopped(`${prefix}/app`);
      t.ok(await isStopped('library/app'), 'several prefixes failed');
      await clock.advance(60_000);
      await isStopped('one/app');
      t.equal((await lookUp(client, victim)).platforms.length, 1);
    },
  );
}

const manyPrefixes = 'a/a b/b c/c d/d e/e f/f';
for (const [headers, hasTokens] of [
  [{}, false],
  [{}, true],
  [{ 'retry-after': '0' }, false],
] as const) {
  for (const repositories of ['app/one app/two app/three app/four app/five app/six', manyPrefixes]) {
    const name = `${repositories} ${JSON.stringify(headers)}${hasTokens ? ' after challenges and tokens' : ''}`;
    t.test(`a rate limit without a time stops a credential, each time for longer: ${name}`, async (t) => {
      const issuer = createIssuer({ access: () => true });
      const { victim, clock, client } = await setUp(t, hasTokens ? { auth: { kind: 'bearer', issuer } } : {});
      const limits = hasTokens ? { isAuthorized: true } : {};
      victim.faults.add(/manifests/, { kind: 'status', status: 429, headers }, limits);
      for (let second = 0; second < 10; second += 1) {
        for (const repository of repositories.split(' '))
          await t.rejects(lookUp(client, victim, { repository: `${repository}-${hasTokens ? second : 0}` }), {
            code: 'rate-limited',
          });
        await clock.advance(1000);
      }
      const limited = victim.requests.filter(({ authorization }) => !hasTokens || authorization);
      t.ok(limited.length < 20, `${limited.length} requests in 10 s`);
    });
  }
}
