/** Keys and patterns of registries, and the keyrings that they form. */
import { array, assert, constantFrom, property } from 'fast-check';
import t from 'tap';
import {
  createKeyring,
  isDockerHub,
  combineSources,
  mayAskAnonymously,
} from '../../../src/credentials/keyring/keyring.ts';
import { indexKey, splitHostPath, matches, parsePattern } from '../../../src/credentials/keyring/key.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { like } from '../../support/like.ts';
import type { CredentialSource } from '../../../src/credentials/credential.ts';
import { createPullSecretSource } from '../../../src/credentials/sources/pull-secrets.ts';

/** Expected values are those of Go 1.26 net/url; `undefined` where it returns an error. */
const keys: [string, string | undefined][] = [
  ['https://gcr.io', 'gcr.io'],
  ['https://gcr.io/', 'gcr.io'],
  ['https://index.docker.io/v1/', 'index.docker.io'],
  ['https://index.docker.io/v1', 'index.docker.io/v1'],
  ['https://gcr.io/v2/', 'gcr.io'],
  ['https://gcr.io/v2/team', 'gcr.io/team'],
  ['https://gcr.io/v1/v1/', 'gcr.io/v1/'],
  ['https://gcr.io/v3/', 'gcr.io/v3/'],
  ['user:pass@gcr.io/foo', 'gcr.io/foo'],
  ['us er@gcr.io', undefined],
  ['a@b@gcr.io', 'gcr.io'],
  ['gcr.io?x=1', 'gcr.io'],
  ['gcr.io#a?b', 'gcr.io'],
  ['gcr.io?%zz', 'gcr.io'],
  ['gcr io', undefined],
  ['gcr\\io', undefined],
  ['gcr.io/a b', 'gcr.io/a b'],
  ['gcr.io/a\tb', undefined],
  ['gcr.io/a\u007fb', undefined],
  ['b%c3%bccher.example', 'bücher.example'],
  ['a%25b', 'a%b'],
  ['gcr.io/%41%2fb', 'gcr.io/A/b'],
  ['gcr.io/é%c3%a9', 'gcr.io/éé'],
  ['', ''],
  ['https://', ''],
];
const unchanged = `
  gcr.io HTTPS://gcr.io HTTPS:/gcr.io ftp://gcr.io gcr.io/v1foo gcr.io/foo/ gcr.io//foo gcr.io/../foo
  GCR.io:443/Foo gcr.io: gcr.io:80 gcr.io:99999 bücher.example *.gcr.io [::1] [::1]:5000/foo /foo
`;
const refused = `
  a%zz@gcr.io gcr.io#%zz gcr.io:* gcr.io:80a gcr.io%41 gcr.io%zz gcr.io% gcr.io/%zz [::1]x [::1 [abc]
  [127.0.0.1] g[c]r.io x[::1]
`;
for (const key of unchanged.trim().split(/\s+/)) keys.push([key, key]);
for (const key of refused.trim().split(/\s+/)) keys.push([key, undefined]);

t.test('keys are read as by net/url', async (t) => {
  for (const [key, expected] of keys) t.equal(indexKey(key), expected, key);
});

t.test('a key is split into host and path', async (t) => {
  t.strictSame(splitHostPath('a:1/b/c?d'), { host: 'a:1', path: '/b/c' });
  t.strictSame(splitHostPath('a'), { host: 'a', path: '' });
});

function match(pattern: string, repository: string): boolean {
  const parsed = parsePattern(pattern);
  const target = parsePattern(repository);
  return parsed !== undefined && target !== undefined && matches(parsed, target);
}

const yes: [string, string][] = [
  ['gcr.io', 'gcr.io/foo'],
  ['gcr.io:443', 'gcr.io:443/foo'],
  ['*.gcr.io', 'eu.gcr.io/foo'],
  ['*', 'localhost/foo'],
  ['*.*', 'gcr.io/foo'],
  ['gcr.io/foo', 'gcr.io/foobar'],
  ['gcr.io/', 'gcr.io/foo'],
  ['gcr.io/foo/', 'gcr.io/foo/bar'],
  ['[::1]:5000', '[::1]:5000/foo'],
  ['127.0.0.1:5000/a', '127.0.0.1:5000/a/b'],
  ['*.dkr.ecr.*.amazonaws.com', '1234.dkr.ecr.eu-west-1.amazonaws.com/app'],
];
const no: [string, string][] = [
  ['gcr.io', 'gcr.io:443/foo'],
  ['gcr.io:443', 'gcr.io/foo'],
  ['gcr.io:80', 'gcr.io:8080/foo'],
  ['GCR.io', 'gcr.io/foo'],
  ['*.io', 'eu.gcr.io/foo'],
  ['*', 'gcr.io/foo'],
  ['*.gcr.io', 'gcr.io/foo'],
  ['gcr.io/foo/', 'gcr.io/foo'],
  ['gcr.io/Foo', 'gcr.io/foo'],
  ['gcr.io/*/bar', 'gcr.io/foo/bar'],
  ['[::1]', '[::1]/foo'],
  ['[::A]', 'A/foo'],
  ['https://gcr.io', 'gcr.io/foo'],
  ['gcr.io%zz', 'gcr.io/foo'],
  ['gcr..io', 'gcr.io/foo'],
  ['', 'gcr.io/foo'],
  ['r.io', 'registry-1.docker.io/foo'],
];

t.test('patterns match repositories', async (t) => {
  for (const [pattern, repository] of yes) t.ok(match(pattern, repository), `${pattern} ${repository}`);
  for (const [pattern, repository] of no) t.notOk(match(pattern, repository), `${pattern} ${repository}`);
});

t.test(
  'property: a star matches any text inside one label, like the equivalent regular expression',
  async () => {
    const letters = (...of: string[]) =>
      array(constantFrom(...of), { maxLength: 8 }).map((all) => all.join(''));
    assert(
      property(letters('a', 'b', '*'), letters('a', 'b'), (pattern, label) => {
        const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(label);
        return match(`${pattern}.io`, `${label}.io/x`) === expected;
      }),
      { numRuns: 1000 },
    );
  },
);

t.test('many stars match without backtracking', async (t) => {
  t.notOk(match(`${'*a'.repeat(2000)}b.io`, `${'a'.repeat(4000)}.io/x`));
});

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
