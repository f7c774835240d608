import t from 'tap';
import { digestOf, isDigest } from '../../../src/registry/manifests/digest.ts';

t.test('digests that can be verified', async (t) => {
  const bytes = Buffer.from('hello');
  const sha256 = 'sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
  t.equal(digestOf(bytes), sha256);
  t.equal(digestOf(bytes, sha256), sha256);
  t.equal(digestOf(bytes, 'nonsense'), sha256);
  t.match(digestOf(bytes, `sha512:${'0'.repeat(128)}`), /^sha512:9b71d224bd62f378/);
  t.ok(isDigest(sha256));
  t.ok(isDigest(digestOf(bytes, 'sha512:')));
  for (const text of [
    '',
    'v1',
    sha256.slice(0, -1),
    `${sha256}0`,
    `${sha256}\n`,
    sha256.toUpperCase(),
    sha256.replace('sha256', 'sha384'),
    sha256.replace('sha256', 'sha512'),
    sha256.slice(7),
  ]) {
    t.notOk(isDigest(text), JSON.stringify(text));
  }
});
