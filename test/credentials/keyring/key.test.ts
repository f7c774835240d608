import t from 'tap';
import { assert, property, array, constantFrom } from 'fast-check';
import { indexKey, splitHostPath, matches, parsePattern } from '../../../src/credentials/keyring/key.ts';

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

for (const [key, expected] of keys) {
  t.test(
    `${JSON.stringify(key)} ${expected === undefined ? 'is not a key' : `is ${expected}`}`,
    async (t) => {
      t.equal(indexKey(key), expected);
    },
  );
}

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

for (const [pattern, repository] of yes) {
  t.test(`${pattern} matches ${repository}`, async (t) => void t.ok(match(pattern, repository)));
}
for (const [pattern, repository] of no) {
  t.test(`${pattern} does not match ${repository}`, async (t) => void t.notOk(match(pattern, repository)));
}

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
