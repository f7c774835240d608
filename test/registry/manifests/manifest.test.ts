import t from 'tap';
import { readManifest, readPlatform, digestOf, isDigest } from '../../../src/registry/manifests/manifest.ts';
import { mediaTypes } from '../../support/registry/content.ts';
import { like } from '../../support/like.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const entry = { mediaType: mediaTypes.ociManifest, digest, size: 2 };
const read = (document: unknown, contentType?: string) =>
  readManifest(Buffer.from(JSON.stringify(document)), contentType);

t.test('the kind follows Content-Type, then mediaType, then the members', async (t) => {
  const list = { manifests: [entry] };
  const listed = { ...list, mediaType: mediaTypes.dockerList };
  const old = { schemaVersion: 1, architecture: 'arm', fsLayers: [] };
  const single = { config: { ...entry, mediaType: mediaTypes.ociConfig }, layers: [] };
  const cases = [
    [list, mediaTypes.ociIndex, 'index', mediaTypes.ociIndex],
    [list, `${mediaTypes.dockerList}; charset=utf-8`, 'index', mediaTypes.dockerList],
    [list, mediaTypes.ociIndex.toUpperCase(), 'index', mediaTypes.ociIndex],
    [listed, undefined, 'index', mediaTypes.dockerList],
    [listed, 'application/octet-stream', 'index', mediaTypes.dockerList],
    [listed, 'application/json', 'index', mediaTypes.dockerList],
    [listed, '', 'index', mediaTypes.dockerList],
    [list, '*/*', 'index', mediaTypes.ociIndex],
    [single, mediaTypes.dockerManifest, 'manifest', mediaTypes.dockerManifest],
    [single, 'text/plain', 'manifest', mediaTypes.ociManifest],
    [listed, mediaTypes.ociIndex, 'index', mediaTypes.ociIndex],
    [{ ...single, mediaType: 'application/vnd.corp' }, undefined, 'manifest', mediaTypes.ociManifest],
    [
      { ...single, mediaType: mediaTypes.dockerManifest },
      mediaTypes.ociManifest,
      'manifest',
      mediaTypes.ociManifest,
    ],
    [
      { ...single, mediaType: 'application/vnd.corp' },
      mediaTypes.ociManifest,
      'manifest',
      mediaTypes.ociManifest,
    ],
    [old, 'text/plain', 'schema1', mediaTypes.schema1.replace('prettyjws', 'json')],
    [old, mediaTypes.schema1, 'schema1', mediaTypes.schema1],
  ] as const;
  for (const [document, contentType, kind, mediaType] of cases) {
    like(t, read(document, contentType), { kind, mediaType }, `${contentType} ${JSON.stringify(document)}`);
  }
});

t.test('malformed and contradictory documents are refused', async (t) => {
  const config = { ...entry, mediaType: mediaTypes.ociConfig };
  const cases = [
    [{ manifests: [], config }, mediaTypes.ociIndex, /mixes/],
    [{ manifests: [], layers: [] }, mediaTypes.dockerList, /mixes/],
    [{ manifests: [], fsLayers: [] }, mediaTypes.ociIndex, /mixes/],
    [{ config, manifests: [] }, mediaTypes.ociManifest, /mixes/],
    [{ config, fsLayers: [] }, mediaTypes.dockerManifest, /mixes/],
    [{ architecture: 'amd64', fsLayers: [], config }, mediaTypes.schema1, /mixes/],
    [
      { mediaType: mediaTypes.ociManifest, manifests: [] },
      mediaTypes.ociIndex,
      /differs from the one in the response/,
    ],
    [{ manifests: {} }, mediaTypes.ociIndex, /without manifests/],
    [{ manifests: [null] }, mediaTypes.ociIndex, /digest/],
    [{ manifests: [{ ...entry, digest: 'sha256:abc' }] }, mediaTypes.ociIndex, /digest/],
    [{ manifests: [{ ...entry, digest: `md5:${'a'.repeat(32)}` }] }, mediaTypes.ociIndex, /digest/],
    [{ manifests: [{ ...entry, size: -1 }] }, mediaTypes.ociIndex, /size/],
    [{ manifests: [{ ...entry, size: '2' }] }, mediaTypes.ociIndex, /size/],
    [{ manifests: [{ ...entry, size: 1.5 }] }, mediaTypes.ociIndex, /size/],
    [{ layers: [] }, mediaTypes.ociManifest, /digest/],
    [{ fsLayers: [] }, mediaTypes.schema1, /without architecture/],
    [{ manifests: [] }, 'text/html', /not that of an image/],
    [{ mediaType: 'text/html' }, undefined, /neither/],
    [{ mediaType: 'text/html' }, 'text/html', /not that of an image/],
    [{}, undefined, /neither/],
    [{ manifests: null, config: null }, 'text/plain', /neither/],
  ] as const;
  for (const [document, contentType, message] of cases) {
    t.throws(
      () => read(document, contentType),
      { name: 'InvalidDocument', message },
      JSON.stringify(document),
    );
  }
});

t.test('a manifest with artifactType or subject claims to be an artifact', async (t) => {
  const config = { ...entry, mediaType: mediaTypes.ociConfig };
  like(t, read({ config, artifactType: 'x/y' }, mediaTypes.ociManifest), {
    imageConfig: true,
    claimsArtifact: true,
  });
  like(t, read({ config, subject: entry }, mediaTypes.ociManifest), { claimsArtifact: true });
  like(t, read({ config, artifactType: '' }, mediaTypes.ociManifest), { claimsArtifact: false });
  like(t, read({ config: { ...entry, mediaType: mediaTypes.dockerConfig } }, mediaTypes.dockerManifest), {
    imageConfig: true,
  });
  like(t, read({ config: { ...entry, mediaType: mediaTypes.helmConfig } }, mediaTypes.ociManifest), {
    imageConfig: false,
  });
});

t.test('platforms are read or ignored', async (t) => {
  t.strictSame(readPlatform({ os: 'windows', architecture: 'amd64', variant: '', 'os.version': '10.0.1' }), {
    os: 'windows',
    architecture: 'amd64',
    osVersion: '10.0.1',
  });
  t.strictSame(readPlatform({ architecture: 'arm', variant: 'v6' }), {
    os: '',
    architecture: 'arm',
    variant: 'v6',
  });
  const features = (list: unknown) => readPlatform({ architecture: 'arm64', 'os.features': list });
  t.strictSame(features(['erofs']), { os: '', architecture: 'arm64', needsFeatures: true });
  for (const none of [undefined, null, [], 'erofs'])
    t.strictSame(features(none), { os: '', architecture: 'arm64' }, String(none));
  const wrong = [{}, { os: 'linux' }, { architecture: 7 }, { architecture: 'a'.repeat(300) }];
  for (const value of [undefined, null, [], 'linux/amd64', ...wrong])
    t.equal(readPlatform(value), undefined, JSON.stringify(value));
});

t.test('digests of sha256, sha384 and sha512 can be verified', async (t) => {
  const bytes = Buffer.from('hello');
  const sha256 = 'sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
  t.equal(digestOf(bytes), sha256);
  t.equal(digestOf(bytes, sha256), sha256);
  t.equal(digestOf(bytes, 'nonsense'), sha256);
  t.match(digestOf(bytes, `sha512:${'0'.repeat(128)}`), /^sha512:9b71d224bd62f378/);
  t.ok(isDigest(sha256));
  t.match(digestOf(bytes, `sha384:${'0'.repeat(96)}`), /^sha384:59e1748777448c69/);
  for (const like of ['sha384:', 'sha512:']) t.ok(isDigest(digestOf(bytes, like)));
  const lengths = [sha256.slice(0, -1), `${sha256}0`, `${sha256}\n`, sha256.slice(7)];
  const algorithms = [sha256.toUpperCase(), ...['384', '512'].map((bits) => sha256.replace('256', bits))];
  for (const text of ['', 'v1', ...lengths, ...algorithms]) t.notOk(isDigest(text), JSON.stringify(text));
});
