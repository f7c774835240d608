import { array, assert, constantFrom, property } from 'fast-check';
import t from 'tap';
import { createKeyring, holdEntries, isDockerHub } from '../../../src/credentials/keyring/keyring.ts';
import { matches, parsePattern } from '../../../src/credentials/keyring/key.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { like } from '../../support/like.ts';

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
