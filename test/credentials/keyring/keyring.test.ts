import { array, assert, constantFrom, property } from 'fast-check';
import t from 'tap';
import {
  createKeyring,
  holdEntries,
  isDockerHub,
  combineSources,
  mayAskAnonymously,
} from '../../../src/credentials/keyring/keyring.ts';
import { matches, parsePattern } from '../../../src/credentials/keyring/key.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { like } from '../../support/like.ts';
import type { CredentialSource } from '../../../src/credentials/credential.ts';
import { createPullSecretSource } from '../../../src/credentials/sources/pull-secrets.ts';

/** A keyring whose user names are the keys, so that the order is visible. */
function order(keys: string[], repository: string): string[] {
  const held = keys.map((key, index) => ({
    key,
    credential: { username: key, password: secret(String(index)) },
    origin: 'here',
  }));
  const found = createKeyring('docker-config', held).lookup(repository);
  return found.map(({ credential }) => credential.username + reveal(credential.password));
}

const cases: [name: string, keys: string[], repository: string, expected: string[]][] = [
  ['upper case sorts behind lower case', ['*.IO', '*.io', 'a.*'], 'a.io/x', ['a.*2', '*.io1']],
  ['the classic Hub key', ['index.docker.io'], 'docker.io/library/nginx', ['index.docker.io0']],
  [
    'the classic Hub key twice',
    ['index.docker.io', 'index.docker.io'],
    'docker.io/a/b',
    ['index.docker.io0', 'index.docker.io1'],
  ],
  ['a direct Hub key hides it', ['index.docker.io', 'docker.io'], 'docker.io/library/nginx', ['docker.io1']],
  [
    'a direct Hub key that does not match leaves it',
    ['index.docker.io', 'docker.io/team'],
    'docker.io/library/nginx',
    ['index.docker.io0'],
  ],
  [
    'other host names of Hub do not match',
    ['registry-1.docker.io', 'hub.docker.com', '*.docker.io'],
    'docker.io/a/b',
    [],
  ],
  ['a Hub key with a path is another key', ['index.docker.io/v1'], 'docker.io/a/b', []],
  ['Hub stands in for no other registry', ['index.docker.io'], 'gcr.io/a', []],
  ['a key that cannot be parsed again', ['gcr.io/%zz'], 'gcr.io/a', []],
  ['a repository that cannot be parsed', ['*.io'], 'gcr.io:*/a', []],
];

for (const [name, keys, repository, expected] of cases) {
  t.test(name, async (t) => void t.strictSame(order(keys, repository), expected));
}

t.test('a match has source, key and origin', async (t) => {
  const credential = { username: 'u', password: secret('p') };
  const [found] = createKeyring('pull-secret', [{ key: 'gcr.io', credential, origin: 'ns/name' }]).lookup(
    'gcr.io/a',
  );
  like(t, found, { source: 'pull-secret', key: 'gcr.io', origin: 'ns/name', credential, id: /^[\w-]{43}$/ });
});

t.test('keys of Docker Hub match its repositories', async (t) => {
  for (const name of ['nginx', 'a/b', 'docker.io/a', 'index.docker.io/a', 'docker.io'])
    t.ok(isDockerHub(name), name);
  for (const name of ['', '/a', 'gcr.io/a', 'host:5000/a', 'mydocker.io/a']) t.notOk(isDockerHub(name), name);
});

t.test('only entries without a registry are skipped', async (t) => {
  const entry = { username: 'u', password: secret('p') };
  const { held, skipped } = holdEntries(
    new Map([
      ['https://gcr.io/v1/', entry],
      ['gcr.io:*', entry],
      ['http://gcr.io', entry],
    ]),
    'file',
  );
  t.strictSame(
    held.map(({ key, origin }) => [key, origin]),
    [
      ['gcr.io', 'file'],
      ['gcr.io', 'file'],
    ],
  );
  t.equal(skipped, 1);
});

t.test('property: finds exactly the matching keys, in descending order', async () => {
  const label = constantFrom('a', 'b', '*', 'a*');
  const host = array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join('.'));
  const path = constantFrom('', '/x', '/x/y', '/z');
  const key = array(host, { minLength: 1, maxLength: 1 }).chain(([h = '']) => path.map((p) => h + p));
  assert(
    property(
      array(key, { maxLength: 8 }),
      constantFrom('a.b/x/y', 'a/x', 'b.b.a/z', 'ab.a/xy'),
      (keys, repository) => {
        const target = parsePattern(repository);
        const expected = keys
          .map((text, index) => ({ text, index, pattern: parsePattern(text) }))
          .filter(({ pattern }) => pattern !== undefined && target !== undefined && matches(pattern, target))
          .sort((x, y) => (x.text < y.text ? 1 : x.text > y.text ? -1 : x.index - y.index))
          .map(({ text, index }) => text + index);
        return JSON.stringify(order(keys, repository)) === JSON.stringify(expected);
      },
    ),
    { numRuns: 300 },
  );
});

function fixed(name: CredentialSource['name'], ...keys: string[]): CredentialSource {
  const keyring = createKeyring(
    name,
    keys.map((key) => ({ key, credential: { username: name, password: secret('p') }, origin: name })),
  );
  return {
    name,
    lookup: (repository) => Promise.resolve(keyring.lookup(repository)),
    problems: () => [{ source: name, origin: name, message: `a problem of ${name}` }],
  };
}
const found = async (sources: CredentialSource[], repository: string) =>
  (await combineSources(sources).lookup(repository)).map(({ source, key }) => `${source} ${key}`);

t.test('sources keep their order; keys are sorted within each', async (t) => {
  const sources = [fixed('pull-secret', 'gcr.io'), fixed('docker-config', 'gcr.io', 'gcr.io/team')];
  t.strictSame(await found(sources, 'gcr.io/team/app'), [
    'pull-secret gcr.io',
    'docker-config gcr.io/team',
    'docker-config gcr.io',
  ]);
  t.strictSame(await found(sources.toReversed(), 'gcr.io/other'), [
    'docker-config gcr.io',
    'pull-secret gcr.io',
  ]);
  t.strictSame(await found([], 'gcr.io/a'), []);
});

t.test('an error of one source fails the lookup', async (t) => {
  const bad = createPullSecretSource([{ type: 'kubernetes.io/dockercfg', data: { '.dockercfg': 'eA==' } }]);
  const both = combineSources([fixed('docker-config', 'gcr.io'), bad]);
  await t.rejects(both.lookup('gcr.io/a'), { name: 'CredentialError' });
  t.equal(both.problems().length, 2);
});

t.test('every source gets the signal and the service account', async (t) => {
  const seen: unknown[] = [];
  const { signal } = new AbortController();
  const account = { namespace: 'team', name: 'a' };
  const source: CredentialSource = {
    ...fixed('credential-provider'),
    lookup: (_, ...given) => {
      seen.push(...given);
      return Promise.resolve([]);
    },
  };
  await combineSources([fixed('docker-config'), source]).lookup('gcr.io/a', signal, account);
  t.equal(seen[0], signal);
  t.equal(seen[1], account);
});

const anonymous: [string, string[], boolean][] = [
  ['docker.io/library/nginx', [], true],
  ['eu.corp.example/app', ['*.corp.example'], false],
  ['docker.io/team/app', ['gcr.io', 'docker.io/team'], false],
  ['docker.io/other/app', ['docker.io/team'], true],
  ['registry.corp:5000/app', ['registry.corp'], true],
  ['registry.corp:5000/app', ['registry.corp:5000'], false],
  ['gcr.io/app', ['gcr.io:*'], true],
  ['gcr.io:*/app', [], true],
  ['gcr.io:*/app', ['quay.io'], false],
];
t.test('private registries are not asked anonymously', async (t) => {
  for (const [repository, patterns, expected] of anonymous)
    t.equal(mayAskAnonymously(repository, patterns), expected, `${repository} with ${patterns.join()}`);
});
