import type { CredentialSourceName, HeldCredential } from '../../src/credentials/credential.ts';
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { contentId, contentOf, textFingerprint, credentialId } from '../../src/credentials/identity.ts';
import { secret } from '../../src/telemetry/secret.ts';

function held(key: string, username: string, password: string, origin = 'here'): HeldCredential {
  return { key, credential: { username, password: secret(password) }, origin };
}

const base = [held('gcr.io', 'user', 'password')];
const others: [string, HeldCredential[]][] = [
  ['another key', [held('quay.io', 'user', 'password')]],
  ['another user', [held('gcr.io', 'user2', 'password')]],
  ['another password', [held('gcr.io', 'user', 'password2')]],
  ['a shifted border', [held('gcr.io', 'userp', 'assword')]],
  ['one more', [...base, ...base]],
  ['nothing', []],
];

t.test('identities are equal only for equal credentials, and reveal no secret', async (t) => {
  const [{ credential }] = [held('a', 'user', 'password')];
  t.equal(credentialId(credential), credentialId(held('b', 'user', 'password', 'there').credential));
  t.not(credentialId(credential), credentialId(held('a', 'user', 'password2').credential));
  t.not(credentialId(credential), credentialId(held('a', 'userp', 'assword').credential));
  t.notMatch(credentialId(credential), /user|password/);
});

t.test('identity and fingerprint do not depend on the location of the file', async (t) => {
  const print = (of: readonly HeldCredential[], source: CredentialSourceName = 'docker-config') =>
    textFingerprint(source, contentOf(of));
  const elsewhere = [held('gcr.io', 'user', 'password', 'elsewhere')];
  t.equal(contentId(base), contentId(elsewhere));
  t.equal(await print(base), await print(elsewhere));
  for (const [name, other] of others) {
    t.not(contentId(base), contentId(other), name);
    t.not(await print(base), await print(other), name);
  }
  for (const each of [base, []]) t.not(await print(each), await print(each, 'registry-toml'), 'kind');
});

t.test('fingerprints depend on the order of credentials', async (t) => {
  const two = [held('gcr.io', 'a', 'password'), held('gcr.io', 'b', 'password')];
  t.not(contentId(two), contentId(two.toReversed()));
});

t.test('another process has the same fingerprints and other identities', async (t) => {
  const module = (name: string) => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).href);
  const program = `
    import { contentId, contentOf, textFingerprint } from ${module('credentials/identity.ts')};
    import { secret } from ${module('telemetry/secret.ts')};
    const held = [{ key: 'gcr.io', credential: { username: 'user', password: secret('password') }, origin: '' }];
    console.log(contentId(held), await textFingerprint('docker-config', contentOf(held)));`;
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  const [id, fingerprint] = out.trim().split(' ');
  t.not(id, contentId(base));
  t.equal(fingerprint, await textFingerprint('docker-config', contentOf(base)));
});
