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
  multiArch,
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

const bundleLabels = {
  'operators.operatorframework.io.bundle.mediatype.v1': 'registry+v1',
  'operators.operatorframework.io.bundle.manifests.v1': 'manifests/',
};
const labeled = (config: unknown): Content => image('linux/amd64', { config: { config } });

async function ask(t: Test, content: Content) {
  const registry = await startRegistry(t);
  const client = clientFor(t);
  registry.push('library/app', 'v1', content);
  const asked = lookUp(client, registry);
  return { registry, asked };
}

const answered: readonly (readonly [
  name: string,
  content: Content,
  kind: 'image' | 'artifact' | 'bundle',
  platforms: string[],
  requests: number,
])[] = [
  [
    'attestations do not count',
    multiArch(['linux/amd64'], { attestations: true }),
    'image',
    ['linux/amd64'],
    1,
  ],
  [
    'unknown/unknown does not count even without annotation',
    index([
      at('linux/arm64'),
      { content: image('unknown/unknown'), platform: platformOf('unknown/unknown') },
    ]),
    'image',
    ['linux/arm64'],
    1,
  ],
  [
    'a child without platform does not count beside one with',
    index([at('linux/arm64'), nameless('linux/s390x')]),
    'image',
    ['linux/arm64'],
    1,
  ],
  [
    'children without platform are looked into where none has one',
    index([nameless('linux/arm64'), nameless('linux/s390x'), attestation(image('linux/arm64'))]),
    'image',
    ['linux/arm64', 'linux/s390x'],
    5,
  ],
  [
    'a nested index is walked',
    index([
      { content: index([at('linux/arm64')]) },
      { content: index([at('linux/arm/v7')]) },
      at('linux/amd64'),
    ]),
    'image',
    ['linux/arm64', 'linux/arm/v7', 'linux/amd64'],
    3,
  ],
  [
    'an empty nested index does not matter',
    index([{ content: index([]) }, at('linux/amd64')]),
    'image',
    ['linux/amd64'],
    2,
  ],
  ['a Helm chart', helmChart(), 'artifact', [], 1],
  ['an OCI artifact', artifact(), 'artifact', [], 1],
  ['an index that says it is an artifact', index([], 'oci', { artifactType: 'x/y' }), 'artifact', [], 1],
  ['an index of artifacts', index([{ content: helmChart() }]), 'artifact', [], 2],
  [
    'an image config that claims to be an artifact is still read',
    manifest(document(mediaTypes.ociConfig, platformOf('linux/riscv64')), [], 'oci', { artifactType: 'x/y' }),
    'image',
    ['linux/riscv64'],
    2,
  ],
  ['a bundle', labeled({ Labels: bundleLabels, Cmd: [] }), 'bundle', [], 2],
  [
    'a bundle with one of its labels, which says that it runs nothing',
    labeled({
      Labels: { 'operators.operatorframework.io.bundle.package.v1': 'x' },
      Entrypoint: '',
      Cmd: null,
    }),
    'bundle',
    [],
    2,
  ],
  ...(
    [
      ['Entrypoint', { Labels: bundleLabels, Entrypoint: ['/manager'] }],
      ['Cmd', { Labels: bundleLabels, Cmd: ['sh'] }],
      ['Cmd as a text', { Labels: bundleLabels, Cmd: 'sh' }],
      ['no label of a bundle', { Labels: { 'operators.operatorframework.io': 'x' } }],
      ['labels that are none', { Labels: 'operators.operatorframework.io.bundle.x' }],
      ['null', null],
    ] as const
  ).map(
    ([what, config]) =>
      [
        `no bundle: ${what}`,
        labeled(config),
        'image',
        ['linux/amd64'],
        2,
      ] satisfies (typeof answered)[number],
  ),
  [
    'a bundle in an index that names no platform: a node takes what is for it',
    index([{ content: labeled({ Labels: bundleLabels }) }]),
    'image',
    ['linux/amd64'],
    3,
  ],
  [
    'a bundle in an index that names its platform',
    index([{ content: labeled({ Labels: bundleLabels }), platform: platformOf('linux/amd64') }]),
    'image',
    ['linux/amd64'],
    1,
  ],
  [
    'an empty image config of an artifact',
    manifest(document(mediaTypes.ociConfig, {}), [], 'oci', { artifactType: 'x/y' }),
    'artifact',
    [],
    2,
  ],
];

for (const [name, content, kind, platforms, requests] of answered) {
  t.test(name, async (t) => {
    const { registry, asked } = await ask(t, content);
    const answer = await asked;
    t.equal(answer.kind, kind);
    t.same(names(answer.platforms), platforms);
    t.equal(registry.requests.length, requests);
    t.equal(answer.digest, content.digest, 'of the top');
  });
}

const refused: readonly (readonly [name: string, content: Content, code: string, message: RegExp])[] = [
  [
    'an image config without architecture',
    manifest(document(mediaTypes.ociConfig, { os: 'linux' }), []),
    'not-an-image',
    /no architecture/,
  ],
  [
    'an index of attestations only',
    index([attestation(image('linux/amd64'))]),
    'not-an-image',
    /no platform/,
  ],
  [
    'nameless children of unknown platform',
    index([nameless('unknown/unknown')]),
    'not-an-image',
    /no platform/,
  ],
  [
    'a child that is announced as something else',
    index([{ content: { ...index([]), mediaType: mediaTypes.ociManifest } }]),
    'unsupported-media-type',
    /differs from the one in the response/,
  ],
];

for (const [name, content, code, message] of refused) {
  t.test(name, async (t) => {
    const { asked } = await ask(t, content);
    await t.rejects(asked, { code, message });
  });
}

t.test('nameless children are read up to sixteen', async (t) => {
  const children = Array.from({ length: 20 }, (_, n) => ({
    content: image('linux/amd64', { label: String(n) }),
  }));
  const { registry, asked } = await ask(t, index(children));
  await asked;
  t.equal(registry.requests.length, 1 + 16 * 2);
});

t.test('nested indexes share one limit of children', async (t) => {
  const half = (label: string) => ({
    content: index(Array.from({ length: 501 }, () => at('linux/amd64', label))),
  });
  const { asked } = await ask(t, index([half('one'), half('two')]));
  await t.rejects(asked, { code: 'too-large', message: /more than 1000/ });
});

t.test('a child with an artifact type is not a platform', async (t) => {
  const child = image('linux/amd64');
  const body = {
    schemaVersion: 2,
    manifests: [
      {
        mediaType: child.mediaType,
        digest: child.digest,
        size: child.bytes.length,
        artifactType: 'x/signature',
        platform: platformOf('linux/amd64'),
      },
      {
        mediaType: child.mediaType,
        digest: child.digest,
        size: child.bytes.length,
        artifactType: mediaTypes.ociConfig,
        platform: platformOf('linux/arm64'),
      },
    ],
  };
  const { asked } = await ask(t, document(mediaTypes.ociIndex, body));
  t.same(names((await asked).platforms), ['linux/arm64']);
});
