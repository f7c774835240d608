import t from 'tap';
import { parseStrictReference, checkDigest } from '../../../src/images/references/grammar.ts';
import { isDigest } from '../../../src/registry/manifests/manifest.ts';

const hex = 'f'.repeat(64);

t.test('a strict reference gets no defaults', async (t) => {
  const cases: [text: string, found: object][] = [
    ['nginx', { domain: '', path: 'nginx' }],
    ['test.com:5000', { domain: '', path: 'test.com', tag: '5000' }],
    ['test:5000/repo:tag', { domain: 'test:5000', path: 'repo', tag: 'tag' }],
    ['a/b', { domain: 'a', path: 'b' }],
    ['a_b/c', { domain: '', path: 'a_b/c' }],
    ['lower:UPPER', { domain: '', path: 'lower', tag: 'UPPER' }],
    ['Sub-Dom.io/a', { domain: 'Sub-Dom.io', path: 'a' }],
    [`repo@sha384:${'0'.repeat(96)}`, { domain: '', path: 'repo', digest: `sha384:${'0'.repeat(96)}` }],
    [`repo@sha512:${'0'.repeat(128)}`, { domain: '', path: 'repo', digest: `sha512:${'0'.repeat(128)}` }],
    [`a/${'b'.repeat(255)}`, { domain: 'a', path: 'b'.repeat(255) }],
  ];
  for (const [text, found] of cases) t.strictSame(parseStrictReference(text), found, text);
});

t.test('malformed references are refused with a message', async (t) => {
  const cases: [text: string, message: string][] = [
    ['', 'repository name must have at least one component'],
    ['Upper', 'repository name must be lowercase'],
    ['test:5000/Upper/lower:tag', 'repository name must be lowercase'],
    ['Upper//lower', 'invalid reference format'],
    [`a/${'b'.repeat(256)}`, 'repository name must not be more than 255 characters'],
    [`a@sha2.56+x:${hex}`, 'invalid reference format'],
    [`a@sha256+b64:${hex}`, 'unsupported digest algorithm'],
    [`a@x.y:${hex}`, 'unsupported digest algorithm'],
    ['a'.repeat(4096), 'repository name must not be more than 255 characters'],
    ['a'.repeat(4097), 'invalid reference format: longer than 4096 characters'],
  ];
  for (const [text, message] of cases) {
    t.throws(() => parseStrictReference(text), { name: 'InvalidReference', message }, text);
  }
  t.throws(() => parseStrictReference(`a@sha512:${'0'.repeat(128)}`, ['sha256']), {
    message: 'unsupported digest algorithm',
  });
});

t.test('digests are checked for algorithm, length and format', async (t) => {
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
    t.throws(() => checkDigest(text), { name: 'InvalidReference', message }, text);
    t.notOk(isDigest(text), text);
  }
});
