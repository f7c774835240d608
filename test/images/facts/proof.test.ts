import t from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { needsProof, NoProof, proveFacts } from '../../../src/images/facts/proof.ts';
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
import { facts } from '../support.ts';

const bundleLabels = { 'operators.operatorframework.io.bundle.mediatype.v1': 'registry+v1' };
const amd = image('linux/amd64');
const arm = image('linux/arm/v7');

/** A document and all documents it refers to. */
function documentsOf(content: Content): Content[] {
  return [content, ...content.children.flatMap(documentsOf), ...content.blobs];
}

/** False facts, as a rogue agent claims them. */
function claimed(documents: readonly Content[]): ImageFacts {
  return facts('r.example/app:1', {
    platforms: [{ os: 'linux', architecture: 's390x' }],
    mediaType: mediaTypes.schema1,
    stale: true,
    documents: documents.map(({ bytes }) => bytes.toString('base64')),
  });
}

const prove = (content: Content, documents: readonly Content[] = documentsOf(content)): Promise<ImageFacts> =>
  proveFacts(content.digest, claimed(documents));

t.test('the documents of an image prove its platforms, whatever the agent claims', async (t) => {
  const cases: [string, Content, string[], string?][] = [
    ['an index', multiArch(['linux/amd64', 'linux/arm64'], { attestations: true }), ['amd64', 'arm64']],
    ['a manifest list', multiArch(['linux/amd64'], { flavor: 'docker' }), ['amd64']],
    ['a manifest', arm, ['arm']],
    ['an index without platforms', index([{ content: amd }, { content: arm }]), ['amd64', 'arm']],
    ['an index in an index', index([{ content: multiArch(['linux/arm64']) }]), ['arm64']],
    ['a bundle', image('linux/amd64', { config: { config: { Labels: bundleLabels } } }), []],
    ['a chart', helmChart(), [], 'not-an-image'],
    ['an artifact', artifact(), [], 'not-an-image'],
  ];
  for (const [name, content, architectures, error] of cases) {
    const proven = await prove(content);
    t.strictSame(
      proven.platforms.map(({ architecture }) => architecture),
      architectures,
      name,
    );
    t.equal(proven.error?.code, error, name);
    t.match(proven, { digest: content.digest, mediaType: content.mediaType, stale: false }, name);
    t.notOk('documents' in proven);
  }
});

t.test('an index that names platforms is proof enough', async (t) => {
  const content = multiArch(['linux/amd64', 'linux/arm64']);
  t.equal((await prove(content, [content])).platforms.length, 2);
  t.equal((await prove(content, [amd, ...documentsOf(content).reverse()])).platforms.length, 2, 'any order');
});

t.test('missing, foreign and malformed documents are no proof', async (t) => {
  const big = document(mediaTypes.ociConfig, { ...platformOf('linux/s390x'), more: 1 });
  const [config] = amd.blobs as [Content];
  const wrongSize = manifest({ ...config, bytes: Buffer.alloc(config.bytes.length + 1) }, []);
  const cases: [string, Content, readonly Content[], RegExp][] = [
    ['none', amd, [], /no document has the digest sha256:/],
    ['of another image', amd, documentsOf(arm), /no document has the digest/],
    ['without the config', amd, [amd], /no document has the digest/],
    ['with another config', amd, [amd, big], /no document has the digest/],
    ['a config of another size', wrongSize, [wrongSize, config], /size of a document differs/],
    ['no manifest', config, [config], /without a usable digest/],
    ['no JSON', document('', '{'), [document('', '{')], /not JSON/],
    ['only attestations', index([attestation(amd)]), [index([attestation(amd)])], /lists no platform/],
  ];
  for (const [name, content, documents, message] of cases)
    await t.rejects(prove(content, documents), { name: 'NoProof', message }, name);
  t.equal(new NoProof('x').name, 'NoProof');
});

t.test('a changed document is no proof', async (t) => {
  const content = multiArch(['linux/amd64', 'linux/arm64']);
  const text = content.bytes.toString().replace('"arm64"', '"s390x"');
  await t.rejects(proveFacts(content.digest, claimed([document(content.mediaType, text)])), NoProof);
});

t.test('facts of a digest need proof; facts of a tag and failures do not', async (t) => {
  const [byTag, byDigest] = [{}, { digest: amd.digest }];
  const fine = facts('r.example/app:1');
  t.notOk(needsProof(byTag, fine));
  t.ok(needsProof(byDigest, fine));
  const failed = (code: 'not-found' | 'not-an-image') => ({ error: { code, message: '' } });
  t.notOk(needsProof(byDigest, failed('not-found')));
  t.notOk(needsProof(byDigest, failed('not-an-image')), 'without a digest it is cached as a failure');
  t.ok(needsProof(byDigest, { ...failed('not-an-image'), digest: amd.digest }));
});
