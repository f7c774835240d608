import { assert, property, string } from 'fast-check';
import t from 'tap';
import { indexKey, splitHostPath } from '../../../src/credentials/keyring/key.ts';

/** Expectations given by Go 1.26 net/url; `undefined` where it gives an error. */
const keys: [string, string | undefined][] = [
  ['gcr.io', 'gcr.io'],
  ['https://gcr.io', 'gcr.io'],
  ['http://gcr.io', 'gcr.io'],
  ['HTTPS://gcr.io', 'HTTPS://gcr.io'],
  ['HTTPS:/gcr.io', 'HTTPS:/gcr.io'],
  ['ftp://gcr.io', 'ftp://gcr.io'],
  ['https://gcr.io/', 'gcr.io'],
  ['https://index.docker.io/v1/', 'index.docker.io'],
  ['https://index.docker.io/v1', 'index.docker.io/v1'],
  ['https://gcr.io/v2/', 'gcr.io'],
  ['https://gcr.io/v2/team', 'gcr.io/team'],
  ['https://gcr.io/v1/v1/', 'gcr.io/v1/'],
  ['https://gcr.io/v3/', 'gcr.io/v3/'],
  ['gcr.io/v1foo', 'gcr.io/v1foo'],
  ['gcr.io/foo/', 'gcr.io/foo/'],
  ['gcr.io//foo', 'gcr.io//foo'],
  ['gcr.io/../foo', 'gcr.io/../foo'],
  ['GCR.io:443/Foo', 'GCR.io:443/Foo'],
  ['user:pass@gcr.io/foo', 'gcr.io/foo'],
  ['us er@gcr.io', undefined],
  ['a%zz@gcr.io', undefined],
  ['a@b@gcr.io', 'gcr.io'],
  ['gcr.io?x=1', 'gcr.io'],
  ['gcr.io/foo?x#y', 'gcr.io/foo'],
  ['gcr.io#a?b', 'gcr.io'],
  ['gcr.io#%zz', undefined],
  ['gcr.io?%zz', 'gcr.io'],
  ['gcr.io:', 'gcr.io:'],
  ['gcr.io:80', 'gcr.io:80'],
  ['gcr.io:99999', 'gcr.io:99999'],
  ['gcr.io:*', undefined],
  ['gcr.io:80a', undefined],
  ['gcr io', undefined],
  ['gcr\\io', undefined],
  ['gcr.io/a b', 'gcr.io/a b'],
  ['gcr.io/a\tb', undefined],
  ['gcr.io/a\u007fb', undefined],
  ['gcr.io%41', undefined],
  ['gcr.io%zz', undefined],
  ['gcr.io%', undefined],
  ['b%c3%bccher.example', 'bücher.example'],
  ['bücher.example', 'bücher.example'],
  ['a%25b', 'a%b'],
  ['gcr.io/%41%2fb', 'gcr.io/A/b'],
  ['gcr.io/é%c3%a9', 'gcr.io/éé'],
  ['gcr.io/%zz', undefined],
  ['*.gcr.io', '*.gcr.io'],
  ['[::1]', '[::1]'],
  ['[::1]:5000/foo', '[::1]:5000/foo'],
  ['[::1]x', undefined],
  ['[::1', undefined],
  ['[abc]', undefined],
  ['[127.0.0.1]', undefined],
  ['g[c]r.io', undefined],
  ['x[::1]', undefined],
  ['', ''],
  ['https://', ''],
  ['/foo', '/foo'],
];

for (const [key, expected] of keys) {
  t.test(`${JSON.stringify(key)} ${expected === undefined ? 'is no key' : `is ${expected}`}`, async (t) => {
    t.equal(indexKey(key), expected);
  });
}

t.test('splits host and path', async (t) => {
  t.same(splitHostPath('a:1/b/c?d'), { host: 'a:1', path: '/b/c' });
  t.same(splitHostPath('a'), { host: 'a', path: '' });
});

t.test('never throws', async () => {
  assert(
    property(string({ unit: 'binary', maxLength: 40 }), (text) => {
      const key = indexKey(text);
      return key === undefined || typeof key === 'string';
    }),
    { numRuns: 1000 },
  );
});
