import t, { type Test } from 'tap';
import { proveFacts } from '../../../src/images/facts/proof.ts';
import { maxProofBytes } from '../../../src/registry/manifest-lookup.ts';
import { DocumentStore, ProvingMemory } from '../../../src/images/sources/documents.ts';
import { createRegistrySource } from '../../../src/images/sources/registry-source.ts';
import { FactsMemory } from '../../../src/images/memory/memory.ts';
import { clientFor, endpointOf, startRegistry } from '../../support/registry/client.ts';
import { image, multiArch, type Content } from '../../support/registry/content.ts';
import { digestOf, facts, manualSource, requestFor, settled } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { recordingLog } from '../../support/captured.ts';

const both = multiArch(['linux/amd64', 'linux/arm64']);
const single = image('linux/arm64');
const repository = 'corp.example/team/app';

/** An agent's memory over a registry. */
async function start(t: Test, contents: readonly Content[], store = new DocumentStore()) {
  const registry = await startRegistry(t);
  for (const [number, content] of contents.entries()) registry.push('team/app', `v${number}`, content);
  const source = createRegistrySource({
    registry: clientFor(t),
    endpoints: { endpoints: async () => [endpointOf(registry)], fingerprint: () => '' },
    credentials: { lookup: async () => [] },
    mayAskAnonymously: () => true,
    onDocuments: (digest, documents) => store.keep(digest, documents),
  });
  const memory = new FactsMemory({ source, log: recordingLog().log });
  t.teardown(() => memory.close());
  const proving = new ProvingMemory({ memory, store });
  const lookup = (text: string) => proving.lookup(requestFor(text), { signal: neverAborted });
  return { registry, store, memory, proving, lookup, gets: () => registry.requests.length };
}

t.test('facts of a digest include documents that prove them', async (t) => {
  const { lookup, gets } = await start(t, [both, single]);
  for (const [content, count] of [
    [both, 1],
    [single, 2],
  ] as const) {
    const facts = await lookup(`${repository}@${content.digest}`);
    t.equal(facts.documents?.length, count);
    const { documents: _, ...others } = facts;
    t.strictSame(await proveFacts(content.digest, facts), others);
  }
  const before = gets();
  t.equal((await lookup(`${repository}@${both.digest}`)).documents?.length, 1, 'again, from memory');
  t.equal(gets(), before);
});

t.test('facts of a tag and failures have no documents', async (t) => {
  const { lookup, store } = await start(t, [both]);
  t.equal((await lookup(`${repository}:v0`)).documents, undefined);
  t.match(await lookup(`${repository}@${digestOf('absent')}`), { error: { code: 'not-found' } });
  t.equal(store.bytes, 0);
});

t.test('missing documents are looked up again, once for concurrent requests', async (t) => {
  const { lookup, gets } = await start(t, [both]);
  await lookup(`${repository}:v0`);
  const before = gets();
  const text = `${repository}@${both.digest}`;
  for (const facts of await Promise.all([lookup(text), lookup(text), lookup(text)]))
    t.equal(facts.documents?.length, 1);
  t.equal(gets(), before + 1);
});

t.test('after a restart, many digests of one namespace and registry do not block others', async (t) => {
  const source = manualSource();
  const memory = new FactsMemory({ source, log: recordingLog().log, concurrentLookups: 16 });
  t.teardown(() => memory.close());
  const proving = new ProvingMemory({ memory, store: new DocumentStore() });
  const images = Array.from({ length: 30 }, (_, number) => `slow.example/app@${digestOf(`${number}`)}`);
  for (const image of [...images, `corp.example/app@${digestOf('other')}`]) memory.learn(facts(image));
  const lookup = (image: string, namespace: string): void => {
    proving.lookup({ ...requestFor(image), namespace }, { signal: neverAborted }).catch(() => undefined);
  };
  for (const image of images) lookup(image, 'noisy');
  await settled();
  const { length } = source.lookups;
  t.ok(length <= 2, `${length} of 16 places`);
  lookup(images.at(-1) ?? '', 'quiet');
  lookup(`corp.example/app@${digestOf('other')}`, 'quiet');
  await settled();
  t.equal(source.lookups.length, length + 2, 'others are looked up at once');
});

t.test('if the registry fails meanwhile, its error is returned', async (t) => {
  const { lookup, registry } = await start(t, [both]);
  await lookup(`${repository}:v0`);
  registry.faults.add(/manifests/, { kind: 'status', status: 503 });
  t.match(await lookup(`${repository}@${both.digest}`), { error: { code: 'unavailable' } });
});

t.test('documents that are too large to send are an error', async (t) => {
  const large = image('linux/amd64', { config: { history: 'x'.repeat(900_000) } });
  const { lookup, store } = await start(t, [large]);
  const facts = await lookup(`${repository}@${large.digest}`);
  t.equal(facts.documents?.length, 2, 'they fit');
  store.keep(large.digest, [Buffer.alloc(maxProofBytes + 1)]);
  t.match(await lookup(`${repository}@${large.digest}`), {
    platforms: [],
    error: { code: 'too-large', message: /1\.25 MiB/ },
  });
});

t.test('the store is bounded; the least recently used documents are removed', async (t) => {
  const store = new DocumentStore(20_000);
  const bytes = Buffer.alloc(4000);
  for (const name of ['a', 'b', 'c']) store.keep(name, [bytes]);
  store.find('a');
  for (const name of ['d', 'e']) store.keep(name, [bytes]);
  t.ok(store.bytes <= 20_000);
  t.equal(store.find('b'), undefined);
  t.ok(store.find('a'));
  store.keep('a', [bytes]);
  t.ok(store.bytes <= 20_000);
  store.keep('large', [Buffer.alloc(30_000)]);
  t.equal(store.bytes, 0, 'it does not fit');
  const many = Array.from({ length: 100 }, () => Buffer.alloc(1));
  store.keep('many', many);
  t.strictSame(store.find('many'), []);
});

t.test('shared facts of digests without small enough documents are left out', async (t) => {
  const medium = image('linux/amd64', { config: { history: 'x'.repeat(40_000) } });
  const { lookup, proving } = await start(t, [image('linux/s390x'), both, single, medium]);
  await lookup(`${repository}:v0`);
  for (const content of [both, single, medium]) await lookup(`${repository}@${content.digest}`);
  const shared = () =>
    [...proving.shared()].map(({ image: text, documents = [] }) => [text, documents.length]);
  t.strictSame(
    new Map(shared() as [string, number][]),
    new Map([
      [`${repository}:v0`, 0],
      [`${repository}@${both.digest}`, 1],
      [`${repository}@${single.digest}`, 2],
    ]),
  );
  t.equal(proving.size, 4);
});
