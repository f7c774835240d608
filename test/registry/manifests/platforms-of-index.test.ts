import t, { type Test } from 'tap';
import { clientFor, lookUp, startRegistry } from '../../support/registry/client.ts';
import {
  artifact,
  attestation,
  document,
  helmChart,
  image,
  index,
  manifest,
  mediaTypes,
  platformOf,
  type Content,
} from '../../support/registry/content.ts';

const at = (platform: string, label?: string) => ({
  content: image(platform, label === undefined ? {} : { label }),
  platform: platformOf(platform),
});
const nameless = (platform: string) => ({ content: image(platform) });
const names = (platforms: readonly { os: string; architecture: string; variant?: string }[]) =>
  platforms.map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'));

const nested = (...children: Parameters<typeof index>[0]) => ({ content: index(children) });
const within = (platform: string, ...children: Parameters<typeof index>[0]) => ({
  ...nested(...children),
  platform: platformOf(platform),
});
const bundleLabel = 'operators.operatorframework.io.bundle.';
const bundleLabels = {
  [`${bundleLabel}mediatype.v1`]: 'registry+v1',
  [`${bundleLabel}manifests.v1`]: 'manifests/',
};
const labeled = (config: unknown): Content => image('linux/amd64', { config: { config } });

async function ask(t: Test, content: Content) {
  const registry = await startRegistry(t);
  const client = clientFor(t);
  registry.push('library/app', 'v1', content);
  const lookup = lookUp(client, registry);
  return { registry, lookup };
}

const bundle = labeled({ Labels: bundleLabels });
const config = (platform: object) => document(mediaTypes.ociConfig, platform);
const claimed = { artifactType: 'x/y' };

/** The expected platforms, else the kind, and the number of requests. */
type Answered = readonly [content: Content, found: string, requests: number];
const answered: Readonly<Record<string, Answered>> = {
  'an attestation does not count, whatever its platform': [
    index([at('linux/arm64'), { ...attestation(image('linux/amd64')), platform: platformOf('linux/amd64') }]),
    'linux/arm64',
    1,
  ],
  'unknown/unknown does not count, even without annotation': [
    index([at('linux/arm64'), at('unknown/unknown')]),
    'linux/arm64',
    1,
  ],
  'a child without platform does not count if another child has one': [
    index([at('linux/arm64'), nameless('linux/s390x')]),
    'linux/arm64',
    1,
  ],
  'if no child has a platform, the configs of the children are read': [
    index([nameless('linux/arm64'), nameless('linux/s390x'), attestation(image('linux/arm64'))]),
    'linux/arm64 linux/s390x',
    5,
  ],
  'nested indexes are read': [
    index([
      within('linux/arm64', at('linux/arm64')),
      within('linux/arm/v7', at('linux/arm')),
      at('linux/amd64'),
    ]),
    'linux/arm64 linux/arm linux/amd64',
    3,
  ],
  'a nested index does not count beside a platform': [
    index([nested(at('linux/arm64')), at('linux/amd64')]),
    'linux/amd64',
    1,
  ],
  'of nested indexes without a platform the first counts': [
    index([nested(at('linux/arm64'), at('linux/s390x')), nested(at('linux/amd64')), nameless('linux/arm')]),
    'linux/arm64 linux/s390x',
    2,
  ],
  'a nested index after a child without platform does not count': [
    index([nameless('linux/arm64'), nested(at('linux/amd64'))]),
    'linux/arm64',
    3,
  ],
  'of a nested index with a platform only that one counts': [
    index([within('linux/arm64', at('linux/amd64'), at('linux/arm64/v8')), at('linux/s390x')]),
    'linux/arm64/v8 linux/s390x',
    2,
  ],
  'a nested index in one with a platform': [
    index([within('linux/arm64', nested(at('linux/amd64'), at('linux/arm64'))), at('linux/s390x')]),
    'linux/arm64 linux/s390x',
    3,
  ],
  'an empty nested index has no platforms': [
    index([within('linux/arm64'), at('linux/amd64')]),
    'linux/amd64',
    2,
  ],
  'a Helm chart is an artifact': [helmChart(), 'artifact', 1],
  'an OCI artifact is an artifact': [artifact(), 'artifact', 1],
  'an index with artifactType is an artifact': [index([], 'oci', claimed), 'artifact', 1],
  'an index of artifacts is an artifact': [index([{ content: helmChart() }]), 'artifact', 2],
  'an image config that claims to be an artifact is still read': [
    manifest(config(platformOf('linux/riscv64')), [], 'oci', claimed),
    'linux/riscv64',
    2,
  ],
  'an artifact with an empty image config is an artifact': [
    manifest(config({}), [], 'oci', claimed),
    'artifact',
    2,
  ],
  'an operator bundle is a bundle': [labeled({ Labels: bundleLabels, Cmd: [] }), 'bundle', 2],
  'a bundle with only one of the labels is a bundle': [
    labeled({ Labels: { [`${bundleLabel}package.v1`]: 'x' }, Entrypoint: '', Cmd: null }),
    'bundle',
    2,
  ],
  'a bundle in an index without platforms is an image of its platform': [
    index([{ content: bundle }]),
    'linux/amd64',
    3,
  ],
  'a bundle in an index with a platform is an image of its platform': [
    index([{ content: bundle, platform: platformOf('linux/amd64') }]),
    'linux/amd64',
    1,
  ],
};
const noBundles = {
  Entrypoint: { Labels: bundleLabels, Entrypoint: ['/manager'] },
  Cmd: { Labels: bundleLabels, Cmd: ['sh'] },
  'Cmd as a text': { Labels: bundleLabels, Cmd: 'sh' },
  'another label': { Labels: { 'operators.operatorframework.io': 'x' } },
  'malformed labels': { Labels: `${bundleLabel}x` },
  null: null,
};
const images = Object.entries(noBundles).map(([what, value]): [string, Answered] => [
  `not a bundle: ${what}`,
  [labeled(value), 'linux/amd64', 2],
]);

for (const [name, [content, found, requests]] of [...Object.entries(answered), ...images]) {
  t.test(name, async (t) => {
    const { registry, lookup } = await ask(t, content);
    const answer = await lookup;
    const isImage = found.includes('/');
    t.equal(answer.kind, isImage ? 'image' : found);
    t.strictSame(names(answer.platforms), isImage ? found.split(' ') : []);
    t.equal(registry.requests.length, requests);
    t.equal(answer.digest, content.digest, 'the digest of the top');
  });
}

const foreign = { content: { ...index([]), mediaType: mediaTypes.ociManifest } };
const notAnImage = 'not-an-image';
const refused: readonly (readonly [name: string, content: Content, code: string, message: RegExp])[] = [
  ['a config without architecture', manifest(config({ os: 'linux' }), []), notAnImage, /no architecture/],
  ['an index of attestations only', index([attestation(image('linux/amd64'))]), notAnImage, /no platform/],
  ['nameless children of unknown platform', index([nameless('unknown/unknown')]), notAnImage, /no platform/],
  [
    'a child with another media type than its descriptor',
    index([foreign]),
    'unsupported-media-type',
    /differs from the one in/,
  ],
];

for (const [name, content, code, message] of refused) {
  t.test(`refused: ${name}`, async (t) => {
    const { lookup } = await ask(t, content);
    await t.rejects(lookup, { code, message });
  });
}

t.test('at most sixteen children without platform are read', async (t) => {
  const children = Array.from({ length: 20 }, (_, n) => ({
    content: image('linux/amd64', { label: String(n) }),
  }));
  const { registry, lookup } = await ask(t, index(children));
  await lookup;
  t.equal(registry.requests.length, 1 + 16 * 2);
});

t.test('nested indexes share one limit on children', async (t) => {
  const half = (label: string) =>
    within('linux/amd64', ...Array.from({ length: 501 }, () => at('linux/amd64', label)));
  const { lookup } = await ask(t, index([half('one'), half('two')]));
  await t.rejects(lookup, { code: 'too-large', message: /more than 1000/ });
});

t.test('a child with an artifact type is not a platform', async (t) => {
  const { mediaType, digest, bytes } = image('linux/amd64');
  const child = (artifactType: string, platform: string) => ({
    mediaType,
    digest,
    size: bytes.length,
    artifactType,
    platform: platformOf(platform),
  });
  const manifests = [child('x/signature', 'linux/amd64'), child(mediaTypes.ociConfig, 'linux/arm64')];
  const { lookup } = await ask(t, document(mediaTypes.ociIndex, { schemaVersion: 2, manifests }));
  t.strictSame(names((await lookup).platforms), ['linux/arm64']);
});
