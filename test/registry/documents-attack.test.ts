/** Attack: documents that cost CPU and memory. Tests count requests, bytes and values instead of time. */
import t, { type Test } from 'tap';
import { createDocumentLimits } from '../../src/registry/document-limits.ts';
import { clientFor, lookUp, startRegistry } from '../support/registry/client.ts';
import {
  document,
  image,
  index,
  mediaTypes,
  multiArch,
  platformOf,
  type Content,
} from '../support/registry/content.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';

const mebibyte = 1024 * 1024;
const { ociIndex } = mediaTypes;

async function setUp(t: Test, content: Content) {
  const registry = await startRegistry(t);
  const clock = createFakeClock();
  const client = clientFor(t, { clock });
  registry.push('library/app', 'v1', content);
  /** How many lookups of 100 succeed before one fails. */
  const succeeding = async (message: RegExp) => {
    let read = 0;
    const attack = async () => {
      for (; read < 100; read += 1) await lookUp(client, registry);
    };
    await t.rejects(attack(), { code: 'rate-limited', message });
    return read;
  };
  return { registry, client, clock, succeeding };
}

/** An index of this size with few values. */
function large(bytes: number, label = '', children: readonly Content[] = []): Content {
  const entries = [image('linux/amd64'), ...children].map((content) => ({ content }));
  const annotations = { label, filler: 'x'.repeat(bytes - 2000) };
  return index(entries, 'oci', { annotations });
}

t.test('4 MiB of objects are refused before they are parsed', async (t) => {
  const bomb = `[${'{},'.repeat(mebibyte)}1]`;
  const { client, registry } = await setUp(t, document(ociIndex, `{"manifests":[],"bomb":${bomb}}`));
  await t.rejects(lookUp(client, registry), { code: 'too-large', message: /more than 20000 values/ });
  t.strictSame(registry.counts(), { 'GET manifests': 1 });
});

t.test('at most 16 nested indexes are followed', async (t) => {
  const platform = { os: 'linux', architecture: 'amd64' };
  const content = image('linux/amd64');
  const nested = Array.from({ length: 900 }, (_, n) =>
    index([{ content, platform }], 'oci', { annotations: { n } }),
  );
  const { client, registry } = await setUp(t, index(nested.map((each) => ({ content: each, platform }))));
  await t.rejects(lookUp(client, registry), { code: 'too-large', message: /more than 16 nested indexes/ });
  t.strictSame(registry.counts(), { 'GET manifests': 17 });
});

t.test('the documents of one lookup are limited to 8 MiB', async (t) => {
  const nested = Array.from({ length: 12 }, (_, n) => ({
    content: large(mebibyte, String(n)),
    platform: platformOf('linux/amd64'),
  }));
  const { client, registry } = await setUp(t, index(nested));
  await t.rejects(lookUp(client, registry), { code: 'too-large', message: /8388608 bytes in total/ });
  t.ok((registry.counts()['GET manifests'] ?? 0) <= 10);
});

t.test('large documents of a registry are rate-limited, its other documents are not', async (t) => {
  const { client, registry, clock, succeeding } = await setUp(t, large(4 * mebibyte - 10));
  registry.push('library/usual', 'v1', multiArch(['linux/amd64']));
  const other = await startRegistry(t);
  other.push('library/app', 'v1', large(mebibyte));
  const read = await succeeding(/large documents took too much work/);
  t.ok(read >= 8 && read <= 32, `${read} documents of 4 MiB were read`);
  t.equal((await lookUp(client, registry, { repository: 'library/usual' })).platforms.length, 1);
  t.equal((await lookUp(client, other)).platforms.length, 1, 'another registry');
  await clock.advance(1000);
  t.equal((await lookUp(client, registry)).platforms.length, 1);
  await t.rejects(lookUp(client, registry), { code: 'rate-limited' });
});

t.test('small documents with many values are rate-limited', async (t) => {
  const values = Array.from({ length: 18_000 }, () => 1);
  const { succeeding } = await setUp(t, index([{ content: image('linux/amd64') }], 'oci', { values }));
  const read = await succeeding(/too much work/);
  t.ok(read <= 32, `${read} documents of 18,000 values were read`);
});

t.test('at most 12 large documents are in memory, at most a third of them for one namespace', async (t) => {
  const documentsFor = createDocumentLimits(createFakeClock());
  const finish = Promise.withResolvers<void>();
  const inside: string[] = [];
  const read = async (namespace: string) => {
    using place = documentsFor(namespace).place('one', neverAborted);
    await place.admit();
    await place.admit();
    inside.push(namespace);
    await finish.promise;
  };
  const namespaces = Array.from({ length: 9 }, (_, index) => `attacker-${index}`);
  const reads = namespaces.flatMap((namespace) => Array.from({ length: 20 }, () => read(namespace)));
  await new Promise(setImmediate);
  const counts = [...Map.groupBy(inside, (namespace) => namespace).values()].map(({ length }) => length);
  t.strictSame(counts, [4, 2, 1, 1, 1, 1, 1, 1]);
  finish.resolve();
  t.equal((await Promise.all(reads)).length, 180, 'all are read in the end');
  using given = documentsFor().place('one', AbortSignal.abort());
  await t.rejects(given.admit(), { name: 'TransportError', failure: 'aborted' });
});
