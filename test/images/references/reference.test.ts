import t from 'tap';
import * as fc from 'fast-check';
import {
  InvalidReference,
  parseNormalized,
  parseReference,
  createReferenceCache,
  maxImageLength,
  parseStrictReference,
} from '../../../src/images/references/reference.ts';
import { withUserMs } from '../../support/cpu-time.ts';
import { formatReference } from '../../../scripts/vectors/upstream/reference-forms.ts';
import { like } from '../../support/like.ts';

const hex = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const digest = `sha256:${hex}`;

t.test('defaults are filled in as containerd does', async (t) => {
  const cases: [image: string, domain: string, path: string, tag?: string | undefined, digest?: string][] = [
    ['nginx:1.27', 'docker.io', 'library/nginx', '1.27'],
    ['docker.io/nginx', 'docker.io', 'library/nginx'],
    ['docker.io/library', 'docker.io', 'library/library'],
    ['index.docker.io/nginx:v1', 'docker.io', 'library/nginx', 'v1'],
    ['index.docker.io/team/app', 'docker.io', 'team/app'],
    ['registry-1.docker.io/nginx', 'registry-1.docker.io', 'nginx'],
    ['gcr.io/a/b/c:v1', 'gcr.io', 'a/b/c', 'v1'],
    ['localhost', 'docker.io', 'library/localhost'],
    ['localhost/app', 'localhost', 'app'],
    ['localhost:5000/app:v1', 'localhost:5000', 'app', 'v1'],
    ['my-registry/app', 'docker.io', 'my-registry/app'],
    ['my-registry:5000/app', 'my-registry:5000', 'app'],
    ['MY-REGISTRY/app', 'MY-REGISTRY', 'app'],
    ['Docker.io/app', 'Docker.io', 'app'],
    ['[::1]:5000/app', '[::1]:5000', 'app'],
    ['[2001:db8::1]/a/b:v1', '[2001:db8::1]', 'a/b', 'v1'],
    ['app@' + digest, 'docker.io', 'library/app', undefined, digest],
    ['gcr.io/app:v1@' + digest, 'gcr.io', 'app', 'v1', digest],
    ['gcr.io:99999/a', 'gcr.io:99999', 'a'],
    [digest, 'docker.io', 'library/sha256', hex],
    [`${hex}:tag`, 'docker.io', `library/${hex}`, 'tag'],
    [`docker.io/${hex}`, 'docker.io', `library/${hex}`],
    ['a_b.c/d', 'a_b.c', 'd'],
    ['a__b/c---d', 'docker.io', 'a__b/c---d'],
    ['app:_tag', 'docker.io', 'library/app', '_tag'],
  ];
  for (const [image, domain, path, tag, digest] of cases) {
    const { object: _, text: __, ...reference } = parseReference(image);
    const expected = { domain, path, repository: `${domain}/${path}` };
    t.strictSame(reference, { ...expected, ...(tag && { tag }), ...(digest && { digest }) }, image);
  }
});

t.test('the kubelet’s refusals are refused with the same message', async (t) => {
  const format = 'invalid reference format';
  const cases: [image: string, message: string][] = [
    ['', format],
    [hex, `invalid repository name (${hex}), cannot specify 64-byte hexadecimal strings`],
    ['docker/Docker', `${format}: repository name (docker/Docker) must be lowercase`],
    ['Nginx', `${format}: repository name (library/Nginx) must be lowercase`],
    ['app@SHA256:' + hex, `${format}: repository name (library/app@SHA256) must be lowercase`],
    ['a/' + 'b'.repeat(254), 'repository name must not be more than 255 characters'],
    [' nginx', format],
    ['nginx ', format],
    ['nginx\n', format],
    [`nginx:${'a'.repeat(129)}`, format],
    [`nginx@${digest}@${digest}`, format],
    [`nginx@sha256:${hex.slice(2)}`, 'invalid checksum digest length'],
    [`nginx@sha256:${hex}00`, 'invalid checksum digest length'],
    [`nginx@sha256:${hex.toUpperCase()}`, 'invalid checksum digest format'],
    [`nginx:v1@SHA256:${hex}`, 'invalid checksum digest format'],
    [`nginx@md5:${hex}`, 'unsupported digest algorithm'],
    ['A'.repeat(5000), `${format}: longer than 4096 characters`],
    [`a${'/a'.repeat(4096)}`, `${format}: longer than 4096 characters`],
  ];
  const malformed = `
    https://gcr.io/a docker://a user:secret@gcr.io/a nginx: nginx@ nginx:a:b nginx:-a nginx:.a /nginx nginx/
    a//b a..b a___b a_.b a- -a -gcr.io/a gcr.io-/a gcr.io./a gcr..io/a gcr.io:/a gcr.io:a/b [::1] [::1]:5000
    [fe80::1%eth0]/a [::ffff:10.0.0.1]/a ::1/a a?b ä/b nginx@sha256:abc
  `;
  for (const image of malformed.trim().split(/\s+/)) cases.push([image, format]);
  for (const [image, message] of cases) {
    t.throws(() => parseReference(image), { name: 'InvalidReference', message }, image);
  }
});

t.test('a path of 255 characters and a tag of 128 are accepted', async (t) => {
  const image = `gcr.io/${'a'.repeat(255)}:${'b'.repeat(128)}`;
  t.equal(formatReference(parseReference(image)), image);
});

t.test('a pull uses the digest, else the tag, else latest', async (t) => {
  like(t, parseReference('nginx'), {
    object: 'latest',
    tag: undefined,
    text: 'docker.io/library/nginx:latest',
    repository: 'docker.io/library/nginx',
  });
  like(t, parseReference('gcr.io/a:v1'), { object: 'v1', tag: 'v1', text: 'gcr.io/a:v1' });
  const both = parseReference(`gcr.io/a:v1@${digest}`);
  like(t, both, { object: digest, digest, tag: 'v1', text: `gcr.io/a@${digest}` });
  t.equal(parseReference('a_b.c/d').text, 'a_b.c/d:latest');
});

t.test('parseNormalized has no domain if the grammar cannot express it', async (t) => {
  t.strictSame(parseNormalized('a_b.c/d'), { domain: '', path: 'a_b.c/d' });
});

t.test('long and repetitive texts are refused in under 250 ms', async (t) => {
  const pieces = ['a', 'a-', 'a.', 'a_', '-', '_', '/', ':', '@', '[', 'a/', 'a:', '0:', 'A', '.a', 'a__'];
  for (const piece of pieces) {
    for (const length of [4000, 100_000]) {
      for (const end of ['', '!', '/!', '@sha256:!']) {
        const text = piece.repeat(length / piece.length) + end;
        const [, ms] = await withUserMs(() => t.throws(() => parseReference(text), InvalidReference));
        if (ms > 250) t.fail(`${piece} × ${length} took ${ms} ms`);
      }
    }
  }
});

const alphanumeric = fc.stringMatching(/^[a-z0-9]{1,6}$/);
const component = fc
  .tuple(
    alphanumeric,
    fc.array(fc.tuple(fc.constantFrom('.', '_', '__', '-', '---'), alphanumeric), { maxLength: 2 }),
  )
  .map(([first, rest]) => first + rest.map(([separator, next]) => separator + next).join(''));
const path = fc.array(component, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const domain = fc.oneof(
  fc.constantFrom('', 'docker.io/', 'index.docker.io/', 'localhost/', '[::1]:5000/', 'UPPER/'),
  fc.stringMatching(/^[a-z][a-z0-9]{0,4}\.[a-z]{2,3}(:[0-9]{1,5})?\/$/),
);
const tag = fc.oneof(fc.constant(''), fc.stringMatching(/^:[A-Za-z0-9_][A-Za-z0-9_.-]{0,10}$/));
const suffix = fc.oneof(fc.constant(''), fc.stringMatching(/^@sha256:[a-f0-9]{64}$/));

t.test('property: a formatted reference parses to itself', async (t) => {
  fc.assert(
    fc.property(fc.tuple(domain, path, tag, suffix), (parts) => {
      fc.pre(!/^[a-f0-9]{64}$/.test(parts.join('')));
      const reference = parseReference(parts.join(''));
      t.matchOnly(parseReference(formatReference(reference)), reference);
      t.equal(parseReference(reference.text).text, reference.text);
    }),
    { numRuns: 300 },
  );
});

t.test('short references are parsed once', async (t) => {
  const parse = createReferenceCache();
  t.equal(parse('nginx'), parse('nginx'));
  t.equal(parse('nginx').repository, 'docker.io/library/nginx');
  t.throws(() => parse('NGINX'), { name: 'InvalidReference' });
  t.throws(() => parse('NGINX'), { name: 'InvalidReference' });
  const long = `${'a.'.repeat(maxImageLength)}b/c`;
  t.not(parse(long), parse(long), 'long ones are not cached');
  t.strictSame(parse(long), parse(long));
});

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
    ['test:5000/Upper/lower:tag', 'repository name must be lowercase'],
    ['Upper//lower', 'invalid reference format'],
    [`a/${'b'.repeat(256)}`, 'repository name must not be more than 255 characters'],
    [`a@sha2.56+x:${hex}`, 'invalid reference format'],
    [`a@sha256+b64:${hex}`, 'unsupported digest algorithm'],
    [`a@x.y:${hex}`, 'unsupported digest algorithm'],
    ['a'.repeat(4097), 'invalid reference format: longer than 4096 characters'],
  ];
  for (const [text, message] of cases) {
    t.throws(() => parseStrictReference(text), { name: 'InvalidReference', message }, text);
  }
  t.throws(() => parseStrictReference(`a@sha512:${'0'.repeat(128)}`, ['sha256']), {
    message: 'unsupported digest algorithm',
  });
});
