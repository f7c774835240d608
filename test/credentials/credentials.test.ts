import { deepStrictEqual } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { array, assert, asyncProperty, constantFrom, record, string, uniqueArray } from 'fast-check';
import t from 'tap';
import { auths as schema, toAuths } from '../../src/credentials/auths.ts';
import { readShape } from '../../src/http/json.ts';
import {
  type MatchedCredential,
  type CredentialSourceName,
  type HeldCredential,
  isObjectName,
  serviceAccountOf,
} from '../../src/credentials/credential.ts';
import { createKeyring } from '../../src/credentials/keyring/keyring.ts';
import {
  helperOf,
  parseHelperAnswer,
  parseHelperConfig,
} from '../../src/credentials/docker/credential-helpers.ts';
import { readProblems } from '../../src/credentials/problems.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { hashOf } from '../../src/names/hash.ts';
import { contentOf, textFingerprint, credentialId } from '../../src/credentials/identity.ts';

const parseAuths = (value: unknown) =>
  readShape(schema, value, (where, problem) => new Error(`${where} ${problem}`));

type Entry = [key: string, username: string, password: string];

function keyring(...entries: Entry[]) {
  return createKeyring(
    'pull-secret',
    entries.map(([key, username, password]) => ({
      key,
      credential: { username, password: secret(password) },
      origin: 'team/secret',
    })),
  );
}
const texts = (matched: readonly MatchedCredential[]) =>
  matched.map(({ key, credential }) => `${key} ${credential.username}:${reveal(credential.password)}`);

t.test('credentials under one key are a list in order', async (t) => {
  const ring = keyring(['gcr.io', 'b', '2'], ['gcr.io', 'a', '1'], ['gcr.io/x', 'c', '3']);
  const auths = toAuths(ring.lookup('gcr.io/x/y'));
  t.strictSame(JSON.parse(JSON.stringify(auths)), {
    'gcr.io/x': [{ username: 'c', password: '3' }],
    'gcr.io': [
      { username: 'b', password: '2' },
      { username: 'a', password: '1' },
    ],
  });
  const source = parseAuths(JSON.parse(JSON.stringify(auths)));
  t.strictSame(texts(await source.lookup('gcr.io/x/y')), ['gcr.io/x c:3', 'gcr.io b:2', 'gcr.io a:1']);
  t.strictSame(texts(await source.lookup('gcr.io/z')), ['gcr.io b:2', 'gcr.io a:1']);
  t.strictSame(await source.lookup('quay.io/z'), []);
});

t.test('the same credential for two images is sent once', async (t) => {
  const ring = keyring(['gcr.io', 'a', '1'], ['gcr.io', 'a', '1']);
  t.strictSame(toAuths([...ring.lookup('gcr.io/x'), ...ring.lookup('gcr.io/y')]), {
    'gcr.io': [{ username: 'a', password: '1' }],
  });
});

t.test('only credentials of pull secrets are sent', async (t) => {
  const [match] = createKeyring('docker-config', [
    { key: 'gcr.io', credential: { username: 'u', password: secret('p') }, origin: '' },
  ]).lookup('gcr.io/a');
  t.strictSame(toAuths(match === undefined ? [] : [match]), {});
});

const good = () => ({ username: 'u', password: 'hunter22' });
const bad: [string, unknown, RegExp][] = [
  ['a list', [], /^ must be an object$/],
  ['a credential that is text', { a: 'hunter22' }, /^0\.credential must be an object$/],
  ['null for a credential', { a: null }, /must be an object/],
  ['a list in a list', { a: [[good()]] }, /must be an object/],
  ['no password', { a: { username: 'u' } }, /^0\.credential\.password is missing$/],
  ['a password that is a number', { a: [good(), { username: 'u', password: 1 }] }, /^1\..*must be a string$/],
  ['an extra member', { a: { ...good(), auth: 'x' } }, /^0\.credential\.auth is not a known field$/],
  [
    'a password that is too long',
    { a: { username: 'u', password: 'x'.repeat(65_537) } },
    /length of <=65536/,
  ],
  ['a key that is too long', { ['a'.repeat(1025)]: good() }, /^0\.key must be a registry$/],
  ['a key that is not a registry', { 'gcr.io:*': good() }, /^0\.key must be a registry$/],
  ['too many', { a: Array.from({ length: 1001 }, good) }, /length of <=1000$/],
];
t.test('other auths are refused, without quoting them', async (t) => {
  for (const [name, value, message] of bad) {
    t.throws(() => parseAuths(value), { message }, name);
    t.throws(() => parseAuths(value), { message: /^(?!.*hunter22)/ });
  }
});

t.test('accepts auths at the limits', async (t) => {
  const long = { username: 'u', password: 'x'.repeat(65_536) };
  t.equal((await parseAuths({ ['a'.repeat(1024)]: long, a: [] }).lookup('a'.repeat(1024))).length, 1);
  t.ok(parseAuths({ a: Array.from({ length: 1000 }, good) }));
});

t.test('the agent finds the same credentials as the webhook, in the same order', async () => {
  const key = constantFrom(
    'gcr.io',
    'gcr.io/v1/x',
    '*.io',
    'docker.io',
    'index.docker.io',
    '__proto__',
    'a%25',
  );
  const entry = record({ key, username: constantFrom('u', 'v', ''), password: string() });
  const repository = constantFrom('gcr.io/v1/x', 'gcr.io/x', 'docker.io/library/a', '__proto__/x');
  const distinct = uniqueArray(entry, { maxLength: 8, selector: (e) => JSON.stringify(e) });
  await assert(
    asyncProperty(distinct, array(repository, { maxLength: 3 }), async (entries, repositories) => {
      const ring = keyring(...entries.map((e): Entry => [e.key, e.username, e.password]));
      const auths = toAuths(repositories.flatMap((name) => ring.lookup(name)));
      const source = parseAuths(JSON.parse(JSON.stringify(auths)));
      for (const name of repositories) {
        deepStrictEqual(texts(await source.lookup(name)), texts(ring.lookup(name)));
      }
    }),
    { numRuns: 300 },
  );
});

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

t.test('a fingerprint depends on the content and its order, not on the location of the file', async (t) => {
  const print = (of: readonly HeldCredential[], source: CredentialSourceName = 'docker-config') =>
    textFingerprint(source, contentOf(of));
  const elsewhere = [held('gcr.io', 'user', 'password', 'elsewhere')];
  const own = await print(base);
  t.equal(await print(elsewhere), own);
  for (const [name, other] of others) t.not(await print(other), own, name);
  const two = [...base, held('gcr.io', 'other', 'password')];
  t.not(await print(two), await print(two.toReversed()), 'order');
  t.equal(await print([]), hashOf(['docker-config']), 'nothing to protect');
  for (const each of [base, []]) t.not(await print(each), await print(each, 'registry-toml'), 'kind');
});

t.test('another process has the same fingerprints and other identities', async (t) => {
  const module = (name: string) => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).href);
  const program = `
    import { contentOf, credentialId, textFingerprint } from ${module('credentials/identity.ts')};
    import { secret } from ${module('telemetry/secret.ts')};
    const held = [{ key: 'gcr.io', credential: { username: 'user', password: secret('password') }, origin: '' }];
    console.log(credentialId(held[0].credential), await textFingerprint('docker-config', contentOf(held)));`;
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  const [id, fingerprint] = out.trim().split(' ');
  t.not(id, credentialId(held('gcr.io', 'user', 'password').credential));
  t.equal(fingerprint, await textFingerprint('docker-config', contentOf(base)));
});

t.test('only valid names of service accounts are accepted', async (t) => {
  const long = 'a'.repeat(64);
  const cases: [namespace: string, name: string, isOne: boolean][] = [
    ['default', 'default', true],
    ['a', '0', true],
    ['team-1', 'build.er-2', true],
    ['a'.repeat(63), 'a'.repeat(253), true],
    [long, 'a', false],
    ['a', 'a'.repeat(254), false],
    ['', 'a', false],
    ['a', '', false],
    ['a.b', 'c', false],
    ['a', 'b,c', false],
    ['a', 'b\n', false],
    ['a\n', 'b', false],
    ['a', 'B', false],
    ['-a', 'b', false],
    ['a-', 'b', false],
    ['a', '.b', false],
    ['a', 'b..c', false],
    ['a', '../b', false],
  ];
  for (const [namespace, name, isOne] of cases) {
    t.equal(isObjectName({ namespace, name }), isOne, JSON.stringify([namespace, name]));
  }
});

t.test('the account of a pod is the named one, else default', async (t) => {
  t.strictSame(serviceAccountOf('team', 'builder'), { namespace: 'team', name: 'builder' });
  for (const none of [undefined, '']) {
    t.strictSame(serviceAccountOf('team', none), { namespace: 'team', name: 'default' });
  }
  t.equal(serviceAccountOf('team', 'no such/account'), undefined);
});

t.test('problems that an agent reports are cleaned and bounded', async (t) => {
  const problem = { source: 'docker-config', origin: '/a', message: 'is not valid JSON' };
  t.strictSame(readProblems([problem, { ...problem, later: 1 }]), [problem, problem]);
  const wrong = [{ source: 'x' }, { origin: 1 }, { message: 1 }].map((part) => [{ ...problem, ...part }]);
  for (const problems of [undefined, null, problem, 'x', [], [null], ['x'], ...wrong])
    t.strictSame(readProblems(problems), [], JSON.stringify(problems));
  const [long] = readProblems([{ ...problem, origin: 'a\nb\u001b[31m', message: 'x'.repeat(9999) }]);
  t.strictSame(long, { ...problem, origin: 'a?b?[31m', message: long?.message });
  t.equal(long?.message.length, 400);
  t.equal(readProblems(Array.from({ length: 50 }, () => problem)).length, 10);
});

t.test('docker credential helpers are chosen by registry', async (t) => {
  const config = {
    credsStore: 'store',
    credHelpers: { 'a.test': 'own', 'b.test': '../sh', 'c.test': '', 'index.docker.io': 'hub' },
    auths: { 'd.test': { identitytoken: 'token' }, 'e.test': { identitytoken: '' }, 'f.test': null },
  };
  const parsed = parseHelperConfig(Buffer.from(JSON.stringify(config)));
  t.strictSame([...parsed.tokens.keys()], ['d.test']);
  t.strictSame(parsed.problems, ['a value of credHelpers is not the name of a credential helper']);
  const server = 'https://index.docker.io/v1/';
  t.strictSame(helperOf(parsed, 'a.test/x'), { name: 'own', server: 'a.test' });
  t.strictSame(helperOf(parsed, 'b.test/x'), { name: 'store', server: 'b.test' });
  t.strictSame(helperOf(parsed, 'docker.io/library/x'), { name: 'hub', server });
  const token = parseHelperAnswer(Buffer.from('{"Username":"<token>","Secret":"s"}'));
  t.strictSame([token.username, token.isIdentityToken], ['', true]);
  for (const answer of ['', '[]', '{"Username":1,"Secret":"s"}', '{"Username":"u","Secret":""}'])
    t.throws(() => parseHelperAnswer(Buffer.from(answer)), { name: 'HelperConfigError' }, answer);
});
