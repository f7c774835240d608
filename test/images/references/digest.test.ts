import t from 'tap';
import { checkDigest, isDigest } from '../../../src/images/references/digest.ts';

const hex = '0a'.repeat(32);

t.test('digests', (t) => {
  t.ok(isDigest(`sha256:${hex}`));
  t.ok(isDigest(`sha384:${'a'.repeat(96)}`));
  t.ok(isDigest(`sha512:${'a'.repeat(128)}`));
  const cases: [text: string, message: string][] = [
    ['', 'invalid checksum digest format'],
    ['sha256', 'invalid checksum digest format'],
    [':abc', 'invalid checksum digest format'],
    ['sha256:', 'invalid checksum digest format'],
    [`SHA256:${hex}`, 'invalid checksum digest format'],
    [`md5:${hex}!`, 'invalid checksum digest format'],
    [`md5:${hex}`, 'unsupported digest algorithm'],
    [`sha256:${hex}0`, 'invalid checksum digest length'],
    [`sha512:${hex}`, 'invalid checksum digest length'],
    [`sha256:${hex.toUpperCase()}`, 'invalid checksum digest format'],
    [`sha256:${'g'.repeat(64)}`, 'invalid checksum digest format'],
  ];
  for (const [text, message] of cases) {
    t.throws(() => checkDigest(text), { code: 'invalid-reference', message }, text);
    t.notOk(isDigest(text), text);
  }
  t.end();
});
